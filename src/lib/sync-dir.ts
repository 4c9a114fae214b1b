import { open } from "node:fs/promises";

/** Flushes a folder: a new name in it is durable only after that (fsync(2)). */
export async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, "r");
  await handle.sync().finally(() => handle.close());
}
