import { readFile } from "node:fs/promises";

/** Returns the resident memory of a process in MB (proc(5), VmRSS, which is in KiB). */
export async function residentMemory(pid: number): Promise<number> {
  const [, size] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  if (size === undefined) throw new Error(`process ${pid} reports no resident memory`);
  return (Number(size) * 1024) / 1e6;
}

/** Returns the options of Node with which SIGUSR2 makes a server collect garbage, and write to a file what it uses, in MB; see `recordPauses`. */
export function recordMemory(file: string): readonly string[] {
  const module = `
    import { writeFileSync } from "node:fs";
    process.on("SIGUSR2", () => {
      gc();
      const { heapUsed, external } = process.memoryUsage();
      writeFileSync(${JSON.stringify(file)}, String((heapUsed + external) / 1e6));
    });`;
  return ["--expose-gc", "--import", `data:text/javascript,${encodeURIComponent(module)}`];
}
