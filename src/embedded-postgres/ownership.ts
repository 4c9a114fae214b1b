import { constants } from "node:fs";
import { chown, type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunAs, UserIds } from "./os-user.ts";

/** Makes the user the owner of `path`. */
export async function give(path: string, { owner }: RunAs): Promise<void> {
  if (owner !== undefined) await chown(path, owner.uid, owner.gid);
}

/**
 * Makes the user the owner of the folder and of what is in it, and returns how many files and folders changed their owner. The
 * folder itself comes last. Whoever was able to run programs as the previous owner may have prepared the folder, and may change it
 * meanwhile: symbolic links are not followed, and files with a second hard link are left alone.
 */
export async function giveTree(dir: string, { owner }: RunAs): Promise<number> {
  if (owner === undefined) return 0;
  const handle = await open(dir, FOLDER);
  return giveFolder(handle, dir, owner).finally(() => handle.close());
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** No FIFO may block us. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Every name is looked up in the open folder, as openat(2) does: the path to it may lead elsewhere by now. */
async function giveFolder(folder: FileHandle, dir: string, owner: UserIds): Promise<number> {
  const base = process.platform === "linux" ? `/proc/self/fd/${folder.fd}` : dir;
  let changed = 0;
  for (const name of await readdir(base)) changed += await giveEntry(join(base, name), owner).catch(ignoreReplaced);
  return changed + (await giveOpen(folder, owner));
}

async function giveEntry(path: string, owner: UserIds): Promise<number> {
  const found = await lstat(path);
  if (!found.isDirectory() && (!found.isFile() || found.uid === owner.uid)) return 0;
  const handle = await open(path, found.isDirectory() ? FOLDER : FILE);
  const give = found.isDirectory() ? giveFolder(handle, path, owner) : giveOpen(handle, owner);
  return give.finally(() => handle.close());
}

async function giveOpen(handle: FileHandle, owner: UserIds): Promise<number> {
  const found = await handle.stat();
  if (found.uid === owner.uid || (found.nlink > 1 && !found.isDirectory())) return 0;
  await handle.chown(owner.uid, owner.gid);
  return 1;
}

/** A file that is gone, or was replaced by a link, is nothing to give. */
function ignoreReplaced(error: NodeJS.ErrnoException): number {
  if (["ENOENT", "ELOOP", "ENOTDIR"].includes(error.code ?? "")) return 0;
  throw error;
}
