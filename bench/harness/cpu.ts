import { readdir, readFile } from "node:fs/promises";
import type { Fixture } from "./fixture.ts";
import type { Measure } from "./scenario.ts";
import type { ServerProcess } from "./server.ts";

/** Converts rounds of load, in requests per second, to rounds of the server's CPU time, in microseconds per request. */
export function cpuPerRequest({ seconds }: Fixture, { pid }: ServerProcess, load: Measure): Measure {
  return async () => {
    const before = await cpuTime(pid);
    const rate = await load();
    return ((await cpuTime(pid)) - before) / (rate * seconds);
  };
}

/** Returns the CPU time of a process's threads in microseconds: /proc/pid/task/tid/schedstat (proc(5)), in nanoseconds. */
async function cpuTime(pid: number): Promise<number> {
  const folder = `/proc/${pid}/task`;
  const times = (await readdir(folder)).map(async (tid) => {
    const [time] = (await readFile(`${folder}/${tid}/schedstat`, "utf8").catch(() => "0")).split(" ");
    return Number(time) / 1000;
  });
  return (await Promise.all(times)).reduce((total, time) => total + time, 0);
}
