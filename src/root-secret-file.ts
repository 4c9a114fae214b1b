import { randomBytes, randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument } from "./errors.ts";
import { parseRootSecret, type RootSecrets } from "./lib/server-keys.ts";
import { clusterDirOf } from "./postgres/embedded/cluster.ts";

/**
 * The root secret of a server with the embedded database: the file `root-secret` in the data folder, mode 0600, made at first
 * start. Lines after the first are retired root secrets. The file appears whole or not at all, and one of several makers wins.
 * Beside a database that is there already none is made: it would fit nothing in it.
 */
export async function loadRootSecrets(dataDir: string): Promise<RootSecrets> {
  const file = join(dataDir, "root-secret");
  const text = (await readIfThere(file)) ?? (await makeFile(dataDir, file));
  const [current = "", ...retired] = text.split("\n").filter((line) => line.trim() !== "");
  return { current: parseRootSecret(current, file), retired: retired.map((line) => parseRootSecret(line, file)) };
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
