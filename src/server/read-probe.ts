import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import { toError } from "../lib/to-error.ts";
import { withTimeout } from "../lib/with-timeout.ts";

/** Minimum time between two runs, in milliseconds, because anyone may request the readiness. */
const INTERVAL = 1_000;

/** How long a busy database may delay the readiness, in milliseconds. */
const MAX_WAIT = 500;

interface ReadProbeOptions {
  /** The statement that verifications need. */
  readonly run: () => Promise<unknown>;
  readonly monotonic: Monotonic;
  /** Tolerated outage of the database in milliseconds: as long as a lease allows verifications from the cache. */
  readonly patience: number;
  /** Called for the first of consecutive failures. */
  readonly onFailure: (error: Error) => void;
}

/** Finds out whether verifications can read keys, by running their statement. A lease shows only that the database answers. */
export function createReadProbe({ run, monotonic, patience, onFailure }: ReadProbeOptions) {
  let failure: { readonly isUnavailable: boolean; readonly since: number } | null = null;
  let lastRun = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  const probe = async () => {
    lastRun = monotonic();
    try {
      await run();
      failure = null;
    } catch (error) {
      const code = error instanceof KeyholdError ? error.code : null;
      if (code === "OVERLOADED") return;
      if (failure === null) onFailure(toError(error));
      failure = { isUnavailable: code === "DATABASE_UNAVAILABLE", since: failure?.since ?? monotonic() };
    }
  };
  /** Returns the result of the last run. */
  const works = () => failure === null || (failure.isUnavailable && monotonic() - failure.since < patience);
  /** Returns whether the statement works, by a run within the last second or, if the database is busy, by the last one. */
  const check = async (): Promise<boolean> => {
    if (monotonic() - lastRun >= INTERVAL)
      running ??= probe().finally(() => {
        running = null;
      });
    if (running !== null) await withTimeout(running, MAX_WAIT, () => undefined);
    return works();
  };
  return { works, check };
}
