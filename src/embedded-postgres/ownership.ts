import { constants } from "node:fs";
import { chown, type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunAs, UserIds } from "./process.ts";

export async function changeOwner(path: string, { owner }: RunAs): Promise<void> {
  if (owner !== undefined) await chown(path, owner.uid, owner.gid);
}

/**
 * Changes the owner of the folder and its contents, the folder last, and returns how many changed. A process of the previous
 * owner may have prepared the folder and may change it concurrently: symbolic links are not followed, and files with
 * a second hard link are left unchanged.
 */
export async function changeOwnerOfTree(dir: string, { owner }: RunAs): Promise<number> {
  if (owner === undefined) return 0;
  const handle = await open(dir, FOLDER);
  return changeFolder(handle, dir, owner).finally(() => handle.close());
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Opening a FIFO must not block. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Every name is resolved relative to the open folder, like openat(2), because its path may be replaced concurrently. */
async function changeFolder(folder: FileHandle, dir: string, owner: UserIds): Promise<number> {
  const base = process.platform === "linux" ? `/proc/self/fd/${folder.fd}` : dir;
  let changed = 0;
  for (const name of await readdir(base)) changed += await changeEntry(join(base, name), owner).catch(ignoreReplaced);
  return changed + (await changeOpen(folder, owner));
}

async function changeEntry(path: string, owner: UserIds): Promise<number> {
  const found = await lstat(path);
  if (!found.isDirectory() && (!found.isFile() || found.uid === owner.uid)) return 0;
  const handle = await open(path, found.isDirectory() ? FOLDER : FILE);
  const work = found.isDirectory() ? changeFolder(handle, path, owner) : changeOpen(handle, owner);
  return work.finally(() => handle.close());
}

async function changeOpen(handle: FileHandle, owner: UserIds): Promise<number> {
  const found = await handle.stat();
  if (found.uid === owner.uid || (found.nlink > 1 && !found.isDirectory())) return 0;
  await handle.chown(owner.uid, owner.gid);
  return 1;
}

/** Ignores a file that was removed or replaced by a link. */
function ignoreReplaced(error: NodeJS.ErrnoException): number {
  if (["ENOENT", "ELOOP", "ENOTDIR"].includes(error.code ?? "")) return 0;
  throw error;
}
