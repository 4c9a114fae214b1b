import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { StreamImplementation } from "../../api/row.ts";
import type { Call, StreamCall, StreamRpc } from "../../api/rpc.ts";
import { parseValid } from "../../api/validation.ts";
import type { Guard } from "../../auth/guard.ts";
import type { Principal } from "../../domain/principal.ts";
import { iterate } from "../../lib/iterate.ts";
import { raceSignal } from "../../lib/race-signal.ts";
import type { Tracing } from "../../observability/tracing.ts";
import { HttpError } from "../wire/http-error.ts";
import { rpcName, toLoggedError } from "../wire/protocol.ts";
import { createPipeline, MAX_REQUEST_BYTES, report } from "./call-pipeline.ts";
import type { ConcurrencyLimiter } from "./concurrency-limiter.ts";

type Response = MessageInitShape<StreamImplementation["method"]["output"]>;

/** A request, and the signal that ends its stream. */
interface Opening {
  readonly message: Message;
  readonly signal: AbortSignal;
}

/** Decorates a server-streaming RPC like a unary one, and authorizes its caller again before each message. `stopping` ends its streams. */
export function createStreamRpc(
  implementation: StreamImplementation,
  guard: Guard,
  limiter: ConcurrencyLimiter,
  stopping: AbortSignal,
  tracing?: Tracing,
): StreamRpc {
  const { method, maxRequestBytes = MAX_REQUEST_BYTES, acceptsCompression, handler } = implementation;
  const endpoint = {
    ...implementation,
    name: rpcName(implementation),
    handler: ({ message, signal }: Opening) => {
      const open = parseValid(method.input, message, handler);
      return (principal: Principal, call: Call) => open(principal, call, signal);
    },
  };
  const { admit, invoke } = createPipeline<Opening, AsyncIterable<Response>>(endpoint, guard, limiter, tracing);
  async function* stream(message: Message, principal: Principal, call: StreamCall): AsyncGenerator<Response, void> {
    const over = new AbortController();
    const signals = call.deadline === undefined ? [stopping] : [stopping, call.deadline];
    const signal = AbortSignal.any([over.signal, ...signals]);
    const opened = await invoke({ message, signal }, principal, call);
    const responses = iterate(opened, (next) => raceSignal(signal, next()));
    // While the client does not read, nothing resumes this function.
    signal.addEventListener("abort", () => void responses.return());
    const forget = call.onDisconnect(() => over.abort(new HttpError("REQUEST_CANCELLED")));
    try {
      for await (const response of responses) {
        // The caller may have been revoked since the previous message.
        await guard(endpoint, call);
        yield response;
      }
      signal.throwIfAborted();
    } catch (error) {
      throw signal.aborted ? toLoggedError(endOf(signal), call.log) : report(error, call, limiter);
    } finally {
      forget();
      over.abort();
    }
  }
  return { method, maxRequestBytes, acceptsCompression, admit, stream };
}

/** Returns the error of a stream that a signal has ended. A transport may have aborted it for an error of Node. */
function endOf({ reason }: AbortSignal): ConnectError {
  return reason instanceof ConnectError ? reason : new HttpError("REQUEST_CANCELLED");
}
