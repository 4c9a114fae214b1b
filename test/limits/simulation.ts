import { vi } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { GrantRequest, GrantTokens } from "../../src/limits/grants.ts";
import { Limiter, type LimiterOptions } from "../../src/limits/limiter.ts";
import { type Seeded, seeded } from "../support/seeded.ts";
import { BucketModel } from "./bucket-model.ts";
import type { Allowance } from "./window-bound.ts";

const EPOCH = Date.UTC(2026, 0, 1);

/** Milliseconds between two renewals. */
const RENEWAL = 333;

/** Milliseconds between two charges of small debts. */
const FLUSH = 1_000;

/** Milliseconds in which all nodes see a change. */
const CHANGE = 50;

/** The lifetime of a node's lease in milliseconds: the shortest that can be configured. */
const LEASE = 1_000;

/** Captured before timers are faked. */
const realImmediate = setImmediate;

export interface Simulated {
  readonly seed: number;
  readonly nodes: number;
  readonly limit: RateLimit;
  /** The longest time of a statement in milliseconds, on each of its two ways. */
  readonly delay: number;
  /** Percent of the statements that fail, half of them after they took effect. */
  readonly failures: number;
}

/** Replaces parts of nodes or of the database, to show that the tests notice. */
export interface Mutation {
  readonly options?: (options: LimiterOptions, node: Node) => LimiterOptions;
  readonly elapsed?: (elapsed: number) => number;
  /** Whether statements change the limit of a bucket to theirs. */
  readonly resizes?: true;
}

/** Of the limit of the simulation. */
const BUCKET = "key/1/requests";

export interface Node {
  readonly limiter: Limiter;
  /** By its own clock. */
  readonly monotonic: () => number;
  /** Infinite before. */
  crashTime: number;
  /** Until when nothing runs. */
  pauseEnd: number;
  /** Leases that it knows of; null: others may not know of it. */
  known: number | null;
  limit: RateLimit;
  admitted: number;
}

/** Nodes with the real limiter, a database in memory, and statements that are slow, reordered or lost, in virtual time. */
export class Simulation {
  readonly nodes: Node[] = [];
  /** Times at which tokens of the limit were spent. */
  readonly admitted: number[] = [];
  /** Those of verifications that began after the limit had been changed. */
  readonly admittedSince: number[] = [];
  readonly allowances: Allowance[] = [];
  limit: RateLimit;
  #changeEnd = 0;
  statements = 0;
  presented = 0;
  denied = 0;
  failed = 0;
  /** By which the clock of the database is ahead. */
  #clockAhead = 0;
  #outageEnd = 0;
  readonly #random: Seeded;
  readonly #database = new BucketModel();
  readonly #options: Simulated;
  readonly #mutation: Mutation;

  constructor(options: Simulated, mutation: Mutation = {}) {
    [this.#options, this.#mutation] = [options, mutation];
    this.limit = options.limit;
    this.#random = seeded(options.seed);
    for (let count = 0; count < options.nodes; count++) this.#add(options.nodes);
  }

  get now(): number {
    return Date.now() - EPOCH;
  }

  present(node: Node): void {
    if (isCrashed(node) || node.pauseEnd > this.now) return;
    this.presented++;
    const start = this.now;
    const charged = node.limiter.charge({ keyId: "1", keyLimits: [node.limit] });
    const note = (denied: unknown) => {
      if (denied !== null) this.denied++;
      else if (!isCrashed(node)) {
        node.admitted++;
        this.admitted.push(this.now);
        if (start >= this.#changeEnd) this.admittedSince.push(this.now);
      }
    };
    if (!("then" in charged)) note(charged.denied);
    else
      charged.then(
        ({ denied }) => note(denied),
        () => this.failed++,
      );
  }

  /** Its debt is not charged, and statements in flight may still take effect. */
  crash(node: Node): void {
    node.crashTime = this.now;
    this.allowances.push({ from: this.now, to: this.now, tokens: debtOf(this.limit, node.known) });
  }

  /** The others learn of it by their next renewals. */
  join(): void {
    this.#add(null);
  }

  /** A node that joins has no debt before the others have renewed. Leases of crashed nodes remain for a while. */
  #renew(node: Node, joinTime: number): void {
    if (this.#outageEnd > this.now || node.pauseEnd > this.now) return;
    const leases = this.nodes.filter(({ crashTime }) => this.now < crashTime + LEASE);
    const isKnown = joinTime === 0 || this.now >= joinTime + LEASE;
    node.known = isKnown ? leases.length : null;
  }

  /** The nodes see another limit one after the other, all before it returns. Statements with the earlier one may take effect later. */
  change(limit: RateLimit): void {
    this.limit = limit;
    this.admittedSince.length = 0;
    this.#changeEnd = this.now + CHANGE;
    this.#database.resize(
      BUCKET,
      { burst: limit.burst, rate: limit.quota / limit.window },
      this.now + this.#clockAhead,
    );
    for (const node of this.nodes)
      setTimeout(() => {
        node.limit = limit;
      }, this.#random.below(CHANGE));
  }

  pause(node: Node, milliseconds: number): void {
    node.pauseEnd = this.now + milliseconds;
  }

  stepClock(milliseconds: number): void {
    this.#clockAhead += milliseconds;
    if (milliseconds < 0) return;
    const { quota, window, burst } = this.limit;
    const tokens = Math.min((milliseconds * quota) / window, burst);
    this.allowances.push({ from: this.now, to: this.now + lifetimeOf(this.limit), tokens });
  }

  stopDatabase(milliseconds: number): void {
    this.#outageEnd = this.now + milliseconds;
  }

  #add(known: number | null): void {
    const origin = this.#random.below(1_000_000);
    const monotonic = () => this.now + origin;
    const options: LimiterOptions = {
      grantTokens: (requests) => this.#grant(requests, node),
      returnTokens: async () => undefined,
      nodes: () => node.known,
      monotonic,
      clock: { now: () => Date.now() },
    };
    const node: Node = {
      get limiter() {
        return limiter;
      },
      monotonic,
      ...{ crashTime: Number.POSITIVE_INFINITY, pauseEnd: 0, known, limit: this.limit, admitted: 0 },
    };
    const limiter = new Limiter(this.#mutation.options?.(options, node) ?? options);
    this.nodes.push(node);
    const joinTime = this.now;
    setTimeout(() => setInterval(() => this.#renew(node, joinTime), RENEWAL), this.#random.below(RENEWAL));
    setTimeout(() => setInterval(() => this.#flush(node), FLUSH), this.#random.below(FLUSH));
  }

  /** The job of a node, which charges small debts. It fails with its statements. */
  #flush(node: Node): void {
    if (!isCrashed(node) && node.pauseEnd <= this.now) node.limiter.flush(false).catch(() => undefined);
  }

  async #grant(requests: readonly GrantRequest[], node: Node): ReturnType<GrantTokens> {
    this.statements++;
    const { delay, failures } = this.#options;
    const fate = this.#random.below(200);
    const [to, from] = [this.#random.below(delay + 1), this.#random.below(delay + 1)];
    await this.#pass(node, to);
    if (this.#outageEnd > this.now || fate < failures) throw new Error("the database did not answer");
    const time = this.now + this.#clockAhead;
    const elapsed = this.#mutation.elapsed ?? ((milliseconds: number) => milliseconds);
    if (this.#mutation.resizes) for (const request of requests) this.#database.resize(request.bucket, request, time);
    const grants = requests.map((request) =>
      this.#database.grant(request, time, elapsed(this.#database.elapsed(request.bucket, time))),
    );
    await this.#pass(node, from);
    if (fate < 2 * failures) throw new Error("the answer was lost");
    return grants;
  }

  /** What passes between a node and the database waits for a node that is paused, and ends with one that crashes. */
  async #pass(node: Node, milliseconds: number): Promise<void> {
    await wait(milliseconds);
    while (node.pauseEnd > this.now) await wait(node.pauseEnd - this.now);
    if (isCrashed(node)) await new Promise(() => undefined);
  }
}

export function isCrashed({ crashTime }: Node): boolean {
  return Number.isFinite(crashTime);
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Milliseconds for which a token may be spent after it was granted. */
export function lifetimeOf({ window }: RateLimit): number {
  return Math.min(1_000, window / 20);
}

/** Tokens that a node may spend before it charges them. */
export function debtOf({ burst }: RateLimit, nodes: number | null): number {
  return nodes === null ? 0 : Math.floor(burst / 20 / (2 * nodes));
}

/** Runs `work` in virtual time, for these milliseconds. */
export async function inVirtualTime<T>(milliseconds: number, work: () => T): Promise<T> {
  vi.useFakeTimers({
    now: EPOCH,
    toFake: ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "setInterval", "clearInterval", "Date"],
  });
  try {
    const result = work();
    let isOver = false;
    setTimeout(() => {
      isOver = true;
    }, milliseconds);
    while (!isOver) {
      vi.advanceTimersToNextTimer();
      await new Promise((resolve) => realImmediate(resolve));
    }
    return result;
  } finally {
    vi.useRealTimers();
  }
}
