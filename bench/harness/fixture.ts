import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Pinning } from "./pinning.ts";

type Close = () => Promise<unknown>;

/** The root folder of this checkout. */
export const THIS_CHECKOUT = resolve(import.meta.dirname, "../..");

/** What the scenarios of a group share: a temporary folder, and resources that are closed at the end. */
export interface Fixture {
  readonly dir: string;
  /** The root folder of the checkout whose server is measured. */
  readonly checkout: string;
  readonly pinning: Pinning;
  /** Seconds of one round of load. */
  readonly seconds: number;
  /** Registers a cleanup; cleanups run in reverse order when the group has finished. */
  onClose(close: Close): void;
  close(): Promise<void>;
}

export async function openFixture(pinning: Pinning, seconds: number, checkout = THIS_CHECKOUT): Promise<Fixture> {
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
      if (failures.length > 0) throw new AggregateError(failures, "some resources of the fixture could not be closed");
    },
  };
}

/** Returns a function that opens a resource once per fixture. */
export function once<T>(open: (fixture: Fixture) => Promise<T>): (fixture: Fixture) => Promise<T> {
  const opened = new WeakMap<Fixture, Promise<T>>();
  return (fixture) => {
    const known = opened.get(fixture) ?? open(fixture);
    opened.set(fixture, known);
    return known;
  };
}
