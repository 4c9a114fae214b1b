import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import { toError } from "../lib/to-error.ts";
import { withTimeout } from "../lib/with-timeout.ts";

/** Minimum time between two runs, in milliseconds: everyone may ask for the readiness. */
const INTERVAL = 1_000;

/** How long a busy database may delay an answer, in milliseconds. */
const MAX_WAIT = 500;

export interface ReadProbeOptions {
  /** The statement that verifications need. */
  readonly run: () => Promise<unknown>;
  readonly monotonic: Monotonic;
  /** For how many milliseconds the database may be unavailable: as long as a lease allows verifications from the cache. */
  readonly patience: number;
  /** Called for the first of consecutive failures. */
  readonly onFailure: (error: Error) => void;
}

/** Finds out whether verifications can read keys, by running their statement. A lease shows only that the database answers. */
export class ReadProbe {
  readonly #options: ReadProbeOptions;
  #failure: { readonly isUnavailable: boolean; readonly since: number } | null = null;
  #lastRun = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;

  constructor(options: ReadProbeOptions) {
    this.#options = options;
  }

  /** The result of the last run. */
  get works(): boolean {
    if (this.#failure === null) return true;
    const { isUnavailable, since } = this.#failure;
    return isUnavailable && this.#options.monotonic() - since < this.#options.patience;
  }

  /** Returns whether the statement works, by a run within the last second or, if the database is busy, by the last one. */
  async check(): Promise<boolean> {
    if (this.#options.monotonic() - this.#lastRun >= INTERVAL)
      this.#running ??= this.#run().finally(() => {
        this.#running = null;
      });
    if (this.#running !== null) await withTimeout(this.#running, MAX_WAIT, () => undefined);
    return this.works;
  }

  async #run(): Promise<void> {
    const { run, monotonic, onFailure } = this.#options;
    this.#lastRun = monotonic();
    try {
      await run();
      this.#failure = null;
    } catch (error) {
      const code = error instanceof KeyholdError ? error.code : null;
      if (code === "OVERLOADED") return;
      if (this.#failure === null) onFailure(toError(error));
      const since = this.#failure?.since ?? monotonic();
      this.#failure = { isUnavailable: code === "DATABASE_UNAVAILABLE", since };
    }
  }
}
