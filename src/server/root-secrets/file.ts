import { randomBytes, randomUUID } from "node:crypto";
import { chmod, chown, link, mkdir, open, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { invalidArgument } from "../../domain/errors.ts";
import { parseRootSecret, type RootSecrets } from "../../domain/server-keys.ts";
import { findBinaries } from "../../embedded-postgres/binaries.ts";
import { clusterDirOf, syncDir } from "../../embedded-postgres/cluster.ts";
import type { Config } from "../config/config.ts";

/** What the configuration says of root secrets. */
export type RootSecretSource = Pick<Config, "rootSecrets" | "rootSecretFile" | "databaseUrl" | "dataDir">;

/**
 * The root secrets of the configuration: its own, those of its file, or those of the embedded database.
 *
 * @throws KeyholdError `INVALID_ARGUMENT` that names the file if it is not there or holds no root secret.
 */
export async function loadRootSecrets(source: RootSecretSource): Promise<RootSecrets> {
  if (source.rootSecrets !== null) return source.rootSecrets;
  const { rootSecretFile: file, dataDir } = source;
  return file === null ? loadOfDataDir(dataDir) : parseRootSecretFile(await readGiven(file), file);
}

/** Where the root secrets stand; null if they came by the environment. */
export function rootSecretFileOf(source: RootSecretSource): string | null {
  if (source.rootSecrets !== null) return null;
  return source.rootSecretFile ?? fileIn(source.dataDir);
}

/** A file of root secrets: the current one first, retired ones below, one a line. */
export function parseRootSecretFile(text: string, file: string): RootSecrets {
  const [current = "", ...retired] = linesOf(text);
  return { current: parseRootSecret(current, file), retired: retired.map((line) => parseRootSecret(line, file)) };
}

/**
 * Changes a file of root secrets, line by line: the new text appears whole or not at all, with the mode and the owner of the old one.
 * `change` sees the lines as they are while nobody else changes them.
 *
 * @throws KeyholdError `INVALID_ARGUMENT` that names the file if it cannot be written there.
 */
export async function changeRootSecretFile(
  file: string,
  change: (lines: readonly string[]) => readonly string[],
): Promise<void> {
  const path = await realpath(file);
  const draft = `${path}.new`;
  const { mode, uid, gid } = await stat(path);
  await write(draft, "").catch((error: NodeJS.ErrnoException) => refuseToWrite(path, draft, error));
  try {
    await writeFile(draft, `${change(linesOf(await readFile(path, "utf8"))).join("\n")}\n`, { flush: true });
    await chown(draft, uid, gid);
    await chmod(draft, mode & 0o777);
    await rename(draft, path).catch((error: NodeJS.ErrnoException) => refuseToWrite(path, draft, error));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncDir(dirname(path));
}

/** The draft is also the lock: it is left by whoever was killed. A file that was mounted by itself cannot be replaced. */
function refuseToWrite(file: string, draft: string, { code }: NodeJS.ErrnoException): never {
  if (code === "EEXIST")
    throw invalidArgument(file, `is being changed by another command; if none runs, remove ${draft}`);
  throw invalidArgument(
    file,
    `cannot be written (${code}): change the secret where it comes from, as docs/operating.md says`,
  );
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

function fileIn(dataDir: string): string {
  return join(dataDir, "root-secret");
}

async function readGiven(file: string): Promise<string> {
  return readFile(file, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw invalidArgument("KEYHOLD_ROOT_SECRET_FILE", `${file} cannot be read (${cause.code})`);
  });
}

/**
 * The root secret of a server with the embedded database: the file `root-secret` in the data folder, mode 0600, made at first
 * start. The file appears whole or not at all, and one of several makers wins. Beside a database that is there already none is
 * made: it would fit nothing in it.
 */
async function loadOfDataDir(dataDir: string): Promise<RootSecrets> {
  const file = fileIn(dataDir);
  return parseRootSecretFile((await readIfThere(file)) ?? (await makeFile(dataDir, file)), file);
}

async function readIfThere(file: string): Promise<string | null> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return null;
  });
}

async function makeFile(dataDir: string, file: string): Promise<string> {
  if (await hasDatabase(dataDir)) {
    // Another process may have made both since we looked: the file comes first.
    const text = await readIfThere(file);
    if (text !== null) return text;
    throw invalidArgument(
      file,
      "is missing, and no key in the database works without it: restore it or set KEYHOLD_ROOT_SECRET",
    );
  }
  // Without the programs there will be no database, nor need there be a place to write to.
  await findBinaries();
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  await write(draft, `${newRootSecret()}\n`);
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(draft);
  await syncDir(dataDir);
  return readFile(file, "utf8");
}

export function newRootSecret(): string {
  return randomBytes(32).toString("base64url");
}

function hasDatabase(dataDir: string): Promise<boolean> {
  return stat(clusterDirOf(dataDir)).then(
    () => true,
    () => false,
  );
}

async function write(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
