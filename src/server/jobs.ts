import type { FastifyBaseLogger } from "fastify";
import type { Clock, Monotonic } from "../lib/clock.ts";
import { withTimeout } from "../lib/with-timeout.ts";

/** Work that every node repeats in the background: what it does must be safe when several nodes do it at once. */
export interface Job {
  /** The label `task` of its metrics. */
  readonly name: string;
  /** Milliseconds from one run to the next; each is varied by up to a tenth, so that nodes do not run together. */
  readonly interval: number;
  readonly failureMessage: string;
  /** Whether it runs a last time when the process stops. */
  readonly runsAtStop?: boolean;
  /** Whether the last run is repeated while it fails, until the process no longer waits for it. */
  readonly retriesAtStop?: boolean;
  /** Runs the job once. The signal aborts when the process no longer waits for the job. */
  run(signal: AbortSignal): Promise<void>;
}

export interface JobsOptions {
  readonly clock: Clock;
  readonly monotonic: Monotonic;
  readonly log: Pick<FastifyBaseLogger, "warn">;
}

const STOP_TIMEOUT = 5_000;

/** Milliseconds. */
const RETRY_DELAY = 500;

export type Jobs = ReturnType<typeof createJobs>;

/** Returns the background jobs of this process. Runs of one job never overlap. */
export function createJobs(options: JobsOptions) {
  const jobs: ReturnType<typeof schedule>[] = [];
  const cancelled = new AbortController();
  let stopping: Promise<unknown> | undefined;
  return {
    stats: () => jobs.map(({ stats }) => stats),
    /** Schedules a job, and returns a function that runs it now: at once, or once more after the run in progress. */
    start: (job: Job): (() => void) => {
      const scheduled = schedule(job, options, cancelled.signal);
      jobs.push(scheduled);
      return scheduled.trigger;
    },
    /** Waits for runs in progress and last runs. Those that take too long are cancelled, and no longer waited for. */
    stop: async (): Promise<void> => {
      stopping ??= withTimeout(Promise.all(jobs.map((job) => job.stop())), STOP_TIMEOUT, () => cancelled.abort());
      await stopping;
    },
  };
}

function schedule(job: Job, { clock, monotonic, log }: JobsOptions, signal: AbortSignal) {
  /** In milliseconds: the duration of all runs, and the end of the last that succeeded. */
  const stats = { name: job.name, runs: 0, failures: 0, duration: 0, lastSuccess: null as number | null };
  let timer: NodeJS.Timeout | undefined;
  /** Null: not running. */
  let running: Promise<void> | null = null;
  let [isTriggered, isStopped] = [false, false];
  /** Never rejects. Returns whether it succeeded. */
  const run = async (): Promise<boolean> => {
    const start = monotonic();
    try {
      stats.runs++;
      await job.run(signal);
      stats.lastSuccess = clock.now();
      return true;
    } catch (err) {
      stats.failures++;
      log.warn({ err }, job.failureMessage);
      return false;
    } finally {
      stats.duration += monotonic() - start;
    }
  };
  const begin = () => {
    isTriggered = false;
    running = run().then(() => {
      running = null;
      if (isTriggered) trigger();
    });
  };
  const trigger = () => {
    if (isStopped) return;
    if (running === null) begin();
    else isTriggered = true;
  };
  const startTimer = () => {
    const delay = job.interval * (0.9 + 0.2 * Math.random());
    timer = setTimeout(() => {
      startTimer();
      if (running === null) begin();
    }, delay);
  };
  startTimer();
  const stop = async () => {
    isStopped = true;
    clearTimeout(timer);
    await running;
    if (!job.runsAtStop) return;
    while (!(await run()) && job.retriesAtStop && !signal.aborted)
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
  };
  return { stats, trigger, stop };
}
