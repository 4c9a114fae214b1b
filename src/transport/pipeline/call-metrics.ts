import type { Protocol } from "../wire/protocol.ts";

/** Counts calls: `begin` when one starts, then `end` of the counter for its RPC and protocol. */
export interface CallCounters {
  begin(): void;
  /** `rpc` is `package.Service/Method`, or `other` for a request that is no RPC. */
  of(rpc: string, protocol: Protocol): CallCounter;
}

export interface CallCounter {
  /** `code` is the name of a gRPC code, such as `NOT_FOUND`. */
  end(code: string, milliseconds: number): void;
}

/** Counts nothing. */
export const uncounted: CallCounters = { begin: () => {}, of: () => ({ end: () => {} }) };
