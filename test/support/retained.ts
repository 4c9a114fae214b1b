import { memoryUsage } from "node:process";
import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Returns the bytes in use after a full garbage collection, without what V8 keeps in reserve. */
export async function retained(): Promise<number> {
  // Twice: a finalizer of the first collection may release more.
  for (let round = 0; round < 2; round++) {
    collect();
    await nextTick();
  }
  const { heapUsed, external } = memoryUsage();
  return heapUsed + external;
}
