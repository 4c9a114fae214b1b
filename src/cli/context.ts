import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { invalidArgument } from "../domain/errors.ts";
import { isJsonObject, parseJson } from "../lib/json.ts";
import { readIfExists, replaceFile } from "../lib/whole-file.ts";
import { serverUrl } from "../server/config/values.ts";

/** The server that `keyhold login` has stored. Contains no token, only the path of its file. */
type Context = NonNullable<Awaited<ReturnType<typeof readContext>>>;

const REMEDY = "run `keyhold login` again, or remove the file";

/** Reads a context; null if there is none. Throws `INVALID_ARGUMENT` if others may read or change it, since it says where tokens are sent. */
export async function readContext(path: string) {
  const text = await readIfExists(path);
  if (text === null) return null;
  if (process.platform !== "win32" && ((await stat(path)).mode & 0o077) !== 0)
    throw invalidArgument(path, `must be accessible to its owner only (mode 0600); ${REMEDY}`);
  const value = parseJson(text);
  const { url, token_file: tokenFile = null, ca_file: caFile = null } = isJsonObject(value) ? value : {};
  if (typeof url !== "string" || !isPath(tokenFile) || !isPath(caFile))
    throw invalidArgument(path, `is not a valid keyhold context; ${REMEDY}`);
  return { url: serverUrl(path, url), tokenFile, caFile };
}

function isPath(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

/** Replaces the context atomically (mode 0600). */
export async function writeContext(path: string, { url, tokenFile, caFile }: Context): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify({ url, token_file: tokenFile, ca_file: caFile })}\n`);
}
