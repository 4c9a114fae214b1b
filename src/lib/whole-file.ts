import { readFile, rename, writeFile } from "node:fs/promises";

/** Reads a text file; null if there is none. */
export function readIfExists(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw error;
  });
}

/** Replaces a file (mode 0600) atomically: after a SIGKILL or power loss it has either the old or the new content. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const next = `${path}.new`;
  await writeFile(next, text, { mode: 0o600, flush: true });
  await rename(next, path);
}
