import { readFile } from "node:fs/promises";

/** Returns the resident memory of a process in MB (proc(5), VmRSS, which is in KiB). */
export async function residentMemory(pid: number): Promise<number> {
  const [, size] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  if (size === undefined) throw new Error(`process ${pid} reports no resident memory`);
  return (Number(size) * 1024) / 1e6;
}
