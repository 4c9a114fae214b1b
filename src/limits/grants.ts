import type { Quota } from "../domain/rate-limit.ts";

/** What is requested of a bucket. */
export interface Requested {
  /** Tokens to grant, as many as there are. */
  readonly wanted: number;
  /** Tokens that were spent without a grant: charged whether there are any or not. */
  readonly owed: number;
}

/** What a node requests of the bucket of a limit, which all nodes share. */
export interface GrantRequest extends Requested {
  /** Name of the bucket. */
  readonly bucket: string;
  /** Its size in tokens. */
  readonly burst: number;
  /** Tokens with which it refills, per millisecond; 0: that of a quota. */
  readonly rate: number;
  /** The calendar of a quota, which refills as a whole at the end of a period. */
  readonly calendar?: Pick<Quota, "period" | "anchorTime">;
}

export interface Grant {
  /** At most `wanted`. */
  readonly granted: number;
  /** Tokens that are granted and not refilled yet, after this grant. */
  readonly level: number;
  /** The end of the period of a quota, by the clock of the database: in milliseconds since the epoch, and from the grant on. */
  readonly reset?: { readonly time: number; readonly after: number };
}

/**
 * Grants tokens, in one transaction, and returns one grant per request, in order. The buckets of one call differ. A call that rejects may
 * have granted and charged.
 */
export type GrantTokens = (requests: readonly GrantRequest[]) => Promise<readonly Grant[]>;

/** Tokens of a quota that a node has not spent. */
export interface Return {
  readonly bucket: string;
  readonly tokens: number;
  /** The end of the period for which they were granted, in milliseconds since the epoch. */
  readonly resetTime: number;
}

/** Takes tokens back whose period has not ended. It must not be repeated: a call that rejects may have taken them. */
export type ReturnTokens = (returns: readonly Return[]) => Promise<void>;
