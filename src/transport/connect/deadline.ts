import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { CallLog } from "../../api/rpc.ts";
import { codeName } from "../call-metrics.ts";

/**
 * The answer, or at the caller's deadline (`grpc-timeout`, `connect-timeout-ms`) the error that says so. What is under way goes on
 * to its end: a caller that gave up does not know whether its change was made. What has not begun by then does not begin.
 */
export function untilDeadline<T>(
  work: () => Promise<T>,
  context: Pick<HandlerContext, "signal" | "timeoutMs">,
  log: CallLog,
): Promise<T> {
  const { signal } = context;
  if (context.timeoutMs() === undefined) return work();
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

function isLate({ reason }: AbortSignal): boolean {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}
