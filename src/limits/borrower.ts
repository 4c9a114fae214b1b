import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { GrantTokens } from "./grants.ts";
import type { SharedBucket } from "./shared-bucket.ts";

export interface BorrowerOptions {
  readonly grantTokens: GrantTokens;
  readonly nodes: () => number | null;
  readonly monotonic: Monotonic;
}

/** Counts: `tokens` were granted, and `owed` charged. */
export interface BorrowerStats {
  statements: number;
  requests: number;
  tokens: number;
  owed: number;
}

/** A bucket to ask about, and the verifications that wait for the answer. */
interface Inquiry {
  readonly bucket: SharedBucket;
  /** The sum of their costs. */
  waiting: number;
  readonly answer: PromiseWithResolvers<void>;
}

/** Milliseconds until what is still owed after a statement is charged. */
const RETRY_DELAY = 250;

/** After this, what waits is rejected. Milliseconds. */
const PATIENCE = 2_000;

/** Rows of a statement: with more, this node and the database would do nothing else for milliseconds. */
const MAX_INQUIRIES = 100;
const MAX_STATEMENTS = 2;

/** Inquiries that are sent without gathering more. */
const MAX_QUEUE = 500;

/**
 * Asks the shared buckets for tokens, and charges what was spent without: many buckets with one statement, and about each with one at a time. A
 * charge whose statement fails is repeated, so it may be charged twice, and is not lost while the node runs.
 */
export class Borrower {
  readonly stats: BorrowerStats = { statements: 0, requests: 0, tokens: 0, owed: 0 };
  readonly #options: BorrowerOptions;
  /** Inquiries for which verifications wait, and the others. */
  readonly #urgent = new Map<SharedBucket, Inquiry>();
  readonly #noted = new Map<SharedBucket, Inquiry>();
  /** Names of the buckets that a statement asks about. */
  readonly #inFlight = new Set<string>();
  #statements = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer ends. */
  #due = 0;
  #isScheduled = false;

  constructor(options: BorrowerOptions) {
    this.#options = options;
  }

  /** Resolves when this many tokens have been requested after the call. Rejects if the database does not answer. */
  borrow(bucket: SharedBucket, cost: number): Promise<void> {
    const inquiry = this.#enqueue(bucket);
    inquiry.waiting += cost;
    this.#noted.delete(bucket);
    this.#urgent.set(bucket, inquiry);
    this.#schedule();
    return inquiry.answer.promise;
  }

  /** Asks about a bucket soon. */
  note(bucket: SharedBucket): void {
    if (bucket.isRequested) return;
    this.#enqueue(bucket);
    this.#delay(bucket.delay);
  }

  /** Charges what was spent of these buckets and of those that are noted, some at a time. Rejects if the database does not answer. */
  async charge(buckets: readonly SharedBucket[]): Promise<void> {
    let start = 0;
    do {
      for (const bucket of buckets.slice(start, start + MAX_INQUIRIES)) this.#enqueue(bucket);
      const answers = [...this.#urgent.values(), ...this.#noted.values()].map(({ answer }) => answer.promise);
      this.#send();
      await Promise.all(answers);
      start += MAX_INQUIRIES;
    } while (start < buckets.length);
  }

  #enqueue(bucket: SharedBucket): Inquiry {
    const queued = this.#urgent.get(bucket) ?? this.#noted.get(bucket);
    if (queued !== undefined) return queued;
    const inquiry = { bucket, waiting: 0, answer: Promise.withResolvers<void>() };
    inquiry.answer.promise.catch(() => undefined);
    bucket.isRequested = true;
    this.#noted.set(bucket, inquiry);
    return inquiry;
  }

  #delay(milliseconds: number): void {
    const due = this.#options.monotonic() + milliseconds;
    if (this.#timer !== undefined && this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => this.#send(), milliseconds).unref();
  }

  /** At the end of the tick, whose calls share a statement. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#statements < MAX_STATEMENTS) {
      const inquiries = this.#next();
      if (inquiries.length === 0) return;
      void this.#ask(inquiries);
    }
  }

  /** Takes inquiries about different buckets, about none of which a statement asks; first those for which verifications wait. */
  #next(): Inquiry[] {
    const inquiries: Inquiry[] = [];
    for (const queue of [this.#urgent, this.#noted]) {
      for (const inquiry of queue.values()) {
        if (inquiries.length === MAX_INQUIRIES) return inquiries;
        const { bucket } = inquiry;
        if (this.#inFlight.has(bucket.name)) continue;
        this.#inFlight.add(bucket.name);
        queue.delete(bucket);
        inquiries.push(inquiry);
      }
    }
    return inquiries;
  }

  async #ask(inquiries: readonly Inquiry[]): Promise<void> {
    const { grantTokens, monotonic, nodes } = this.#options;
    const sent = monotonic();
    const asked = inquiries.map(({ bucket, waiting }) => ({
      bucket,
      requested: bucket.request(waiting, sent, nodes()),
    }));
    this.#statements++;
    this.stats.statements++;
    let hasFailed = false;
    const reject = (error: unknown) => {
      for (const { answer } of inquiries) answer.reject(error);
    };
    try {
      const granting = grantTokens(asked.map(({ requested }) => requested));
      void withTimeout(granting, PATIENCE, () => reject(tooSlow())).catch(() => undefined);
      const grants = await granting;
      const now = monotonic();
      for (const [index, { bucket, requested }] of asked.entries()) {
        const grant = grants[index];
        if (grant === undefined) continue;
        bucket.take(grant, requested, sent, now);
        this.#count(grant.granted, requested.owed);
      }
      for (const { answer } of inquiries) answer.resolve();
    } catch (error) {
      hasFailed = true;
      reject(error);
    } finally {
      this.#statements--;
      for (const { bucket } of inquiries) this.#end(bucket);
      this.#continue(hasFailed);
      for (const { bucket } of inquiries) this.#chargeLater(bucket);
    }
  }

  /** Sends what waits, and the rest if it is much, but after a failure: the next statements may fail at once, too. The rest is gathered further. */
  #continue(hasFailed: boolean): void {
    if (this.#urgent.size > 0 || (this.#noted.size >= MAX_QUEUE && !hasFailed)) this.#send();
    else if (hasFailed) this.#delay(RETRY_DELAY);
    else for (const { bucket } of this.#noted.values()) this.#delay(bucket.delay);
  }

  #count(tokens: number, owed: number): void {
    this.stats.requests++;
    this.stats.tokens += tokens;
    this.stats.owed += owed;
  }

  #end(bucket: SharedBucket): void {
    this.#inFlight.delete(bucket.name);
    bucket.isRequested = this.#urgent.has(bucket) || this.#noted.has(bucket);
  }

  /** Not with what is sent at once: while the database is unreachable, statements may fail without a pause. */
  #chargeLater(bucket: SharedBucket): void {
    if (bucket.isRequested || !bucket.owes) return;
    this.#enqueue(bucket);
    this.#delay(RETRY_DELAY);
  }
}

/** Returns the error of a check whose tokens do not arrive in time, or have expired when they arrive. */
export function tooSlow(): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", "the database is too slow to grant tokens of a rate limit");
}
