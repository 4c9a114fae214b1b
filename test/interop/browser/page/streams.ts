import { Code } from "@connectrpc/connect";
import { HealthCheckResponse_ServingStatus as Status } from "../../../../gen/health/v1/health_pb.js";
import type { Ok } from "../checks.ts";
import { type Clients, codeOf, refusal, type Settings, TRACE_CONTEXT } from "./clients.ts";

/** Ends a stream and a call by a deadline and by a signal. */
export async function deadlineAndCancellation({ health, issued }: Clients, ok: Ok): Promise<void> {
  const statuses: Status[] = [];
  const watch = async (options: { timeoutMs?: number; signal?: AbortSignal }, seen: () => void) => {
    for await (const { status } of health.watch({}, options)) {
      statuses.push(status);
      seen();
    }
  };
  const late = await refusal(watch({ timeoutMs: 3000 }, () => {}));
  ok("a stream ends at its deadline", late.code === Code.DeadlineExceeded, codeOf(late));
  const control = new AbortController();
  const cancelled = await refusal(watch({ signal: control.signal }, () => control.abort()));
  ok("a stream ends when it is cancelled", cancelled.code === Code.Canceled, codeOf(cancelled));
  ok("both have sent the status", statuses.length === 2 && statuses.every((one) => one === Status.SERVING), statuses);
  const aborted = await refusal(issued.listIssuedApiKeys({}, { signal: AbortSignal.abort() }));
  ok("a call is cancelled", aborted.code === Code.Canceled, codeOf(aborted));
}

/** Leaves the deadline to the server, since connect-web has a timer too. */
export async function deadlineOfTheServer({ baseUrl }: Settings, ok: Ok): Promise<void> {
  const response = await fetch(`${baseUrl}/grpc.health.v1.Health/Watch`, {
    method: "POST",
    headers: {
      "content-type": "application/grpc-web+proto",
      "x-grpc-web": "1",
      "grpc-timeout": "200m",
      ...TRACE_CONTEXT,
    },
    body: new Uint8Array(5),
  });
  const text = await response.text();
  ok("the server ends a stream with DEADLINE_EXCEEDED", text.includes("grpc-status: 4\r\n"), text);
}
