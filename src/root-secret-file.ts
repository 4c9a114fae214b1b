import { randomBytes, randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "./config.ts";
import { invalidArgument } from "./errors.ts";
import { parseRootSecret, type RootSecrets } from "./lib/server-keys.ts";
import { clusterDirOf } from "./postgres/embedded/cluster.ts";

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
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  await write(draft, `${randomBytes(32).toString("base64url")}\n`);
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(draft);
  await syncDir(dataDir);
  return readFile(file, "utf8");
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

/** A new name in a folder is durable only after the folder itself is (fsync(2)). */
async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, "r");
  await handle.sync().finally(() => handle.close());
}
