import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Pinning } from "./pinning.ts";

type Close = () => Promise<unknown>;

/** The root folder of the project that this harness belongs to. */
export const THIS_CHECKOUT = resolve(import.meta.dirname, "../..");

/** What the scenarios of one group stand on: a folder, and whatever is to be closed at the end. */
export interface Stage {
  readonly dir: string;
  /** The root folder of the project whose server is measured. */
  readonly checkout: string;
  readonly pinning: Pinning;
  /** Of one round of load. */
  readonly seconds: number;
  /** Closes in the opposite order, when the group is over. */
  onClose(close: Close): void;
  close(): Promise<void>;
}

export async function openStage(pinning: Pinning, seconds: number, checkout = THIS_CHECKOUT): Promise<Stage> {
  const dir = await mkdtemp(join(tmpdir(), "keyhold-bench-"));
  const closing: Close[] = [() => rm(dir, { recursive: true, force: true, maxRetries: 10 })];
  return {
    dir,
    checkout,
    pinning,
    seconds,
    onClose: (close) => closing.unshift(close),
    close: async () => {
      const failures: unknown[] = [];
      for (const close of closing.splice(0)) await close().catch((error: unknown) => failures.push(error));
      if (failures.length > 0) throw new AggregateError(failures, "not everything of the stage could be closed");
    },
  };
}

/** Makes something once for a stage, whoever of its scenarios asks first. */
export function once<T>(open: (stage: Stage) => Promise<T>): (stage: Stage) => Promise<T> {
  const opened = new WeakMap<Stage, Promise<T>>();
  return (stage) => {
    const known = opened.get(stage) ?? open(stage);
    opened.set(stage, known);
    return known;
  };
}
