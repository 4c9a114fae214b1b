import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseRootSecret, type RootSecrets } from "./lib/server-keys.ts";

/**
 * The root secret of a server with the embedded database: the file `root-secret` in the data folder, mode 0600, made at first
 * start. Lines after the first are retired root secrets. The file appears whole or not at all, and one of several makers wins.
 */
export async function loadRootSecrets(dataDir: string): Promise<RootSecrets> {
  const file = join(dataDir, "root-secret");
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return createFile(dataDir, file);
  });
  const [current = "", ...retired] = text.split("\n").filter((line) => line.trim() !== "");
  return { current: parseRootSecret(current, file), retired: retired.map((line) => parseRootSecret(line, file)) };
}

async function createFile(dataDir: string, file: string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(`${randomBytes(32).toString("base64url")}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(draft);
  return readFile(file, "utf8");
}
