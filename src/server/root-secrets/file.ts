import { randomBytes, randomUUID } from "node:crypto";
import { chmod, chown, link, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { invalidArgument } from "../../domain/errors.ts";
import { parseRootSecret, type RootSecrets } from "../../domain/server-keys.ts";
import { syncDir } from "../../lib/sync-dir.ts";
import { readIfExists } from "../../lib/whole-file.ts";
import type { Config } from "../config/config.ts";
import { hasEmbeddedFiles, requireEmbedded } from "../database-server.ts";

/** Where the configuration gets root secrets from. */
export type RootSecretSource = Pick<Config, "rootSecrets" | "rootSecretFile" | "databaseUrl" | "dataDir">;

/**
 * Returns the root secrets of the configuration: from the environment, its file, or the data directory of the embedded database, where
 * they are created if there is no database yet.
 *
 * @throws KeyholdError `INVALID_ARGUMENT` that names the file if it is missing or contains no root secret.
 */
export async function loadRootSecrets(source: RootSecretSource): Promise<RootSecrets> {
  return readRootSecrets(source, (file) =>
    source.rootSecretFile === null ? readOrCreate(source.dataDir, file) : readConfigured(file),
  );
}

/**
 * Reads the root secrets where they are, without creating any: in a file, the current one is in the first line, then one retired or staged
 * secret per line. @throws `ENOENT` and the like, of their file.
 */
export async function readRootSecrets(
  source: RootSecretSource,
  read = (file: string) => readFile(file, "utf8"),
): Promise<RootSecrets> {
  if (source.rootSecrets !== null) return source.rootSecrets;
  const file = source.rootSecretFile ?? join(source.dataDir, "root-secret");
  const [current = "", ...retired] = linesOf(await read(file));
  return { current: parseRootSecret(current, file), retired: retired.map((line) => parseRootSecret(line, file)) };
}

/** Returns the path of the file with the root secrets, or null if they are in the environment. */
export function rootSecretFileOf({ rootSecrets, rootSecretFile, dataDir }: RootSecretSource): string | null {
  return rootSecrets === null ? (rootSecretFile ?? join(dataDir, "root-secret")) : null;
}

/**
 * Replaces the lines of a file of root secrets atomically, and keeps its mode and owner. `change` receives the current lines while the
 * file is locked against other commands.
 *
 * @throws KeyholdError `INVALID_ARGUMENT` that names the file if it cannot be written there.
 */
export async function changeRootSecretFile(
  file: string,
  change: (lines: readonly string[]) => readonly string[],
): Promise<void> {
  const path = await realpath(file);
  const temporary = `${path}.new`;
  const { mode, uid, gid } = await stat(path);
  await write(temporary, "").catch((error: NodeJS.ErrnoException) => throwNotWritable(path, temporary, error));
  try {
    await writeFile(temporary, `${change(linesOf(await readFile(path, "utf8"))).join("\n")}\n`, { flush: true });
    await chown(temporary, uid, gid);
    await chmod(temporary, mode & 0o777);
    await rename(temporary, path).catch((error: NodeJS.ErrnoException) => throwNotWritable(path, temporary, error));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDir(dirname(path));
}

/** The temporary file is also the lock; a killed command leaves it behind. A file that is a mount point itself cannot be replaced. */
function throwNotWritable(file: string, temporary: string, { code }: NodeJS.ErrnoException): never {
  if (code === "EEXIST")
    throw invalidArgument(file, `is being changed by another command; if none is running, remove ${temporary}`);
  throw invalidArgument(
    file,
    `cannot be written (${code}): change the secret at its source, such as the Kubernetes Secret that is mounted here`,
  );
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

function readConfigured(file: string): Promise<string> {
  return readFile(file, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw invalidArgument("KEYHOLD_ROOT_SECRET_FILE", `${file} cannot be read (${cause.code})`);
  });
}

/**
 * Reads or creates the file `root-secret` in the data directory, mode 0600. It is created atomically; if several processes create it, one
 * wins. None is created for an existing database, whose content it could not verify.
 */
async function readOrCreate(dataDir: string, file: string): Promise<string> {
  // Checked before the file is read: another process may create both meanwhile, the file first.
  const hasDatabase = hasEmbeddedFiles(dataDir);
  const text = await readIfExists(file);
  if (text !== null) return text;
  if (hasDatabase) {
    throw invalidArgument(
      file,
      "is missing, and every key in the database depends on it: restore it from a backup, or set KEYHOLD_ROOT_SECRET to the same secret",
    );
  }
  // Fail before writing anything if there can be no database.
  await requireEmbedded();
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomUUID()}`;
  await write(temporary, `${newRootSecret()}\n`);
  await link(temporary, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(temporary);
  await syncDir(dataDir);
  return readFile(file, "utf8");
}

export function newRootSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Rejects if the file exists. */
function write(file: string, text: string): Promise<void> {
  return writeFile(file, text, { flag: "wx", mode: 0o600, flush: true });
}
