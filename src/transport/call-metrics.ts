import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { STATUSES } from "./errors/http-error.ts";

/** What a call came by. */
export type Protocol = "rest" | "connect" | "grpc" | "grpc_web";

/** Whoever counts calls: told when one begins, and by the counter of its RPC and protocol when it ends. */
export interface CallCounters {
  begin(): void;
  /** `rpc` is `package.Service/Method`, or `other` for what is no call of an RPC. */
  of(rpc: string, protocol: Protocol): CallCounter;
}

export interface CallCounter {
  /** `code` is the name of a gRPC code, such as `NOT_FOUND`. */
  end(code: string, milliseconds: number): void;
}

/** Counts nothing. */
export const uncounted: CallCounters = { begin: () => {}, of: () => ({ end: () => {} }) };

/** The code of a call that ended well. */
export const OK = "OK";

/** The status that nginx logs where the client has disconnected, for the log alone: nobody receives it. */
export const CLIENT_CLOSED_REQUEST = STATUSES[Code.Canceled].http;

/** `package.Service/Method`, as in the log, in metrics and in traces. */
export function rpcName({ method }: { readonly method: DescMethod }): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** The name of a code in google.rpc.Code, for the log, for metrics and for traces. */
export function codeName(code: Code): string {
  return STATUSES[code].name;
}

/** The code of an answer that is none of an RPC, by its HTTP status. */
export function codeOfStatus(status: number): string {
  if (status < 400) return OK;
  return Object.values(STATUSES).find(({ http }) => http === status)?.name ?? codeName(Code.Unknown);
}
