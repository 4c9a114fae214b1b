import type { DescMethod } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { toConnectError } from "../../api/errors.ts";
import type { CallLog } from "../../api/rpc.ts";
import { STATUSES } from "./http-error.ts";

export type Protocol = "rest" | "connect" | "grpc" | "grpc_web";

/** The code of a successful call. */
export const OK = "OK";

/** The status that nginx logs when the client has disconnected; for the log only. */
export const CLIENT_CLOSED_REQUEST = STATUSES[Code.Canceled].http;

/** Returns `package.Service/Method`, as in the log, metrics and traces. */
export function rpcName({ method }: { readonly method: DescMethod }): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** Returns the name of a code in google.rpc.Code, for the log, metrics and traces. */
export function codeName(code: Code): string {
  return STATUSES[code].name;
}

/** Returns any error as a `ConnectError`, and adds its code to the log entry. */
export function toLoggedError(cause: unknown, log: CallLog): ConnectError {
  const error = toConnectError(cause);
  log.add({ code: codeName(error.code) });
  return error;
}

/** Returns the code of a response that is not an RPC's, by its HTTP status. */
export function codeOfStatus(status: number): string {
  if (status < 400) return OK;
  return Object.values(STATUSES).find(({ http }) => http === status)?.name ?? codeName(Code.Unknown);
}
