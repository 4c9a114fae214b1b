/** What a node asks of the bucket of a limit, which all nodes share. */
export interface GrantRequest {
  /** Name of the bucket. */
  readonly bucket: string;
  /** Its size in tokens. */
  readonly burst: number;
  /** Tokens with which it refills, per millisecond. */
  readonly rate: number;
  /** Tokens to grant, as many as there are. */
  readonly wanted: number;
  /** Tokens that were spent without a grant: charged whether there are any or not. */
  readonly owed: number;
}

export interface Grant {
  /** At most `wanted`. */
  readonly granted: number;
  /** Tokens that are granted and not refilled yet, after this grant. */
  readonly level: number;
}

/**
 * Grants tokens, in one transaction, and returns one grant per request, in order. The buckets of one call differ. A call that rejects may
 * have granted and charged.
 */
export type GrantTokens = (requests: readonly GrantRequest[]) => Promise<readonly Grant[]>;
