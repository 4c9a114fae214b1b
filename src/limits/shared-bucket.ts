import type { Limit, LimitStatus } from "../domain/rate-limit.ts";
import type { Grant, GrantRequest, Return } from "./grants.ts";

/** How a bucket answers a cost: at once; with a denial; or after tokens have been requested. */
export type Admission = "ADMITTED" | "DENIED" | "UNKNOWN";

/**
 * What this node knows of the bucket of a limit, which all nodes share. It receives the time, in monotonic milliseconds, and the number of
 * nodes that may verify (null: unknown), and requests nothing itself.
 */
export interface SharedBucket {
  /** Of the shared bucket. */
  readonly name: string;
  readonly limit: Limit;
  /** Whether the limit never denies. */
  readonly isShadow: boolean;
  /** Milliseconds for which requests for which nothing waits are gathered, so that they share a statement. */
  readonly delay: number;
  /** Whether it waits for an answer of the shared bucket, or to be asked about. */
  isRequested: boolean;
  /** Whether the tokens that were granted last had expired when they arrived: the database, or this node, is too slow for the limit. */
  readonly isLate: boolean;
  /** Whether something was spent that is not charged. */
  readonly owes: boolean;
  /** Whether it must be kept. */
  readonly isBusy: boolean;
  /** Takes a limit that may have been changed: what was leased by the earlier one is void. */
  accept(limit: Limit): void;
  /** Counts a cost that is presented, whether it will be admitted or not. */
  present(cost: number, now: number): void;
  admission(cost: number, now: number, nodes: number | null): Admission;
  /** Spends an admitted cost. */
  spend(cost: number, now: number): void;
  /** Returns whether tokens should be requested before they are needed, or what was spent charged soon. */
  wantsMore(now: number, nodes: number | null): boolean;
  /** Returns what to request now, if costs wait for this many tokens. */
  request(waiting: number, now: number, nodes: number | null): GrantRequest;
  /** Takes a grant for what `request` has returned at `sent`. */
  take(grant: Grant, requested: GrantRequest, sent: number, now: number): void;
  /** Takes out tokens that can be returned: those that are not used, or all when the node stops. */
  release(now: number, isStopping: boolean): Return | null;
  /** Returns whether nothing would be lost with the bucket. */
  isIdle(now: number): boolean;
  /** Returns the state after a verification of this cost, at `time` in milliseconds since the epoch. */
  status(cost: number, isExceeded: boolean, now: number, time: number): LimitStatus;
}
