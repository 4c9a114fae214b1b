import type { IncomingHttpHeaders } from "node:http";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import type { CallLog } from "../../api/rpc.ts";
import { headerOf } from "./headers.ts";
import { codeName } from "./protocol.ts";

/** The longest delay of a Node timer, in milliseconds: a longer one fires after 1 ms. */
export const MAX_TIMER = 2 ** 31 - 1;

/** The deadline of a call in its request header. */
export type Deadline = typeof CONNECT_DEADLINE;

export const CONNECT_DEADLINE = {
  header: "connect-timeout-ms",
  /** Returns milliseconds; undefined for a malformed value. */
  parse: (value: string) => parseConnectTimeout(value, Number.MAX_SAFE_INTEGER).timeoutMs,
  /** The value of the longest deadline within `MAX_TIMER`. */
  longest: `${MAX_TIMER}`,
};

export const GRPC_DEADLINE: Deadline = {
  header: "grpc-timeout",
  parse: (value) => parseGrpcTimeout(value, Number.MAX_SAFE_INTEGER).timeoutMs,
  longest: `${Math.floor(MAX_TIMER / 1000)}S`,
};

/** Shortens the deadlines that Connect would pass to a timer unchanged. `fields` has the same header, and is faster to read. */
export function boundDeadlines(fields: IncomingHttpHeaders, header: Headers): void {
  for (const { header: name, parse, longest } of [CONNECT_DEADLINE, GRPC_DEADLINE]) {
    const value = headerOf(fields, name);
    if (value !== undefined && (parse(value) ?? 0) > MAX_TIMER) header.set(name, longest);
  }
}

export function timedOut(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

/**
 * Returns the response, or at the caller's deadline an error. Work in flight continues to its end: the client does not know whether its
 * change was made. `requireTime` keeps it from starting a change.
 */
export function untilDeadline<T>(
  work: () => Promise<T>,
  { signal, timeoutMs }: Pick<HandlerContext, "signal" | "timeoutMs">,
  log: CallLog,
): Promise<T> {
  if (timeoutMs() === undefined) return work();
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      if (!isLate(signal)) return;
      log.add({ code: codeName(Code.DeadlineExceeded) });
      reject(signal.reason);
    };
    if (isLate(signal)) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    const settled = () => signal.removeEventListener("abort", giveUp);
    work().finally(settled).then(resolve, reject);
  });
}

/** Throws if the caller's deadline has passed. */
export function requireTime({ signal }: Pick<HandlerContext, "signal">): void {
  if (isLate(signal)) throw signal.reason;
}

function isLate({ reason }: AbortSignal): boolean {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}
