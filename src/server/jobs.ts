import type { FastifyBaseLogger } from "fastify";
import type { Clock, Monotonic } from "../lib/clock.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { Leadership } from "../postgres/cluster/leadership.ts";

/** Work that is repeated in the background. */
export interface Job {
  /** The label `task` of its metrics. */
  readonly name: string;
  /** Milliseconds from one run to the next; each is varied by up to a tenth, so that nodes do not run together. */
  readonly interval: number;
  /** The log message of a run that fails. */
  readonly failureMessage: string;
  /** Whether only the leader of all nodes runs it. By default each node does. A failover may leave two leaders for a while. */
  readonly isForLeader?: boolean;
  /** Whether it runs a last time when the process stops. */
  readonly runsAtStop?: boolean;
  /** Does the work once. The signal is aborted when the process has waited long enough for its end. */
  run(signal: AbortSignal): Promise<void>;
}

/** What the metrics of a job are read from. */
export interface JobStats {
  readonly name: string;
  readonly runs: number;
  readonly failures: number;
  /** Of all runs, in milliseconds. */
  readonly duration: number;
  /** When the last run that succeeded ended, in milliseconds since the epoch; null: none has yet. */
  readonly lastSuccess: number | null;
}

export interface JobsOptions {
  /** Elects one node of the cluster. */
  readonly leadership: Pick<Leadership, "isLeader" | "close">;
  readonly clock: Clock;
  readonly monotonic: Monotonic;
  readonly log: Pick<FastifyBaseLogger, "warn">;
}

const STOP_TIMEOUT = 5_000;

/** The background jobs of this process. Runs of one job never overlap. */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #jobs: ScheduledJob[] = [];
  readonly #cancelled = new AbortController();
  #stopped: Promise<void> | undefined;

  constructor(options: JobsOptions) {
    this.#options = options;
  }

  get stats(): readonly JobStats[] {
    return this.#jobs.map(({ stats }) => stats);
  }

  /** Schedules a job, and returns a function that runs it now: at once, or once more after the run in progress. */
  start(job: Job): () => void {
    const scheduled = new ScheduledJob(job, this.#options, this.#cancelled.signal);
    this.#jobs.push(scheduled);
    return () => scheduled.trigger();
  }

  /** Waits for runs in progress and last runs. Those that take too long are cancelled, and no longer waited for. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const stopped = Promise.all(this.#jobs.map((job) => job.stop()));
    await withTimeout(stopped, STOP_TIMEOUT, () => this.#cancelled.abort());
    await this.#options.leadership.close();
  }
}

class ScheduledJob {
  readonly stats: { -readonly [K in keyof JobStats]: JobStats[K] };
  readonly #job: Job;
  readonly #options: JobsOptions;
  readonly #signal: AbortSignal;
  #timer: NodeJS.Timeout | undefined;
  /** Null: not running. */
  #running: Promise<void> | null = null;
  #isTriggered = false;
  #isStopped = false;

  constructor(job: Job, options: JobsOptions, signal: AbortSignal) {
    this.#job = job;
    this.#options = options;
    this.#signal = signal;
    this.stats = { name: job.name, runs: 0, failures: 0, duration: 0, lastSuccess: null };
    this.#schedule();
  }

  trigger(): void {
    if (this.#isStopped) return;
    if (this.#running === null) this.#begin();
    else this.#isTriggered = true;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
    if (this.#job.runsAtStop) await this.#run();
  }

  #schedule(): void {
    const delay = this.#job.interval * (0.9 + 0.2 * Math.random());
    this.#timer = setTimeout(() => {
      this.#schedule();
      if (this.#running === null) this.#begin();
    }, delay);
  }

  #begin(): void {
    this.#isTriggered = false;
    this.#running = this.#run().finally(() => {
      this.#running = null;
      if (this.#isTriggered) this.trigger();
    });
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { leadership, clock, monotonic, log } = this.#options;
    const start = monotonic();
    try {
      if (this.#job.isForLeader && !(await leadership.isLeader())) return;
      this.stats.runs++;
      await this.#job.run(this.#signal);
      this.stats.lastSuccess = clock.now();
    } catch (err) {
      this.stats.failures++;
      log.warn({ err }, this.#job.failureMessage);
    } finally {
      this.stats.duration += monotonic() - start;
    }
  }
}
