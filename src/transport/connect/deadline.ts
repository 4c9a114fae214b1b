import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { CallLog } from "../../api/rpc.ts";

/**
 * The answer, or at the caller's deadline (`grpc-timeout`, `connect-timeout-ms`) the error that says so. What is under way goes on
 * to its end: a caller that gave up does not know whether its change was made.
 */
export function untilDeadline<T>(
  answer: Promise<T>,
  context: Pick<HandlerContext, "signal" | "timeoutMs">,
  log: CallLog,
): Promise<T> {
  const { signal } = context;
  if (context.timeoutMs() === undefined) return answer;
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      const { reason } = signal;
      if (!(reason instanceof ConnectError) || reason.code !== Code.DeadlineExceeded) return;
      log.add({ code: Code[reason.code] });
      reject(reason);
    };
    answer.then(resolve, reject);
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
  });
}
