import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import type { Implementation } from "../../api/row.ts";
import type { Rpc } from "../../api/rpc.ts";
import { parseValid } from "../../api/validation.ts";
import type { Guard } from "../../auth/guard.ts";
import type { Tracing } from "../../observability/tracing.ts";
import { rpcName } from "../wire/protocol.ts";
import { createPipeline } from "./call-pipeline.ts";
import type { ConcurrencyLimiter } from "./concurrency-limiter.ts";

/** The default of every RPC. */
const MAX_REQUEST_BYTES = 2 ** 20;

type Response = MessageInitShape<Implementation["method"]["output"]>;

/** Decorates an implementation with authorization, validation, load shedding, the error table and tracing. Every transport uses it. */
export function createRpc(
  implementation: Implementation,
  guard: Guard,
  limiter: ConcurrencyLimiter,
  tracing?: Tracing,
): Rpc {
  const { method, maxRequestBytes = MAX_REQUEST_BYTES, acceptsCompression, handler } = implementation;
  const endpoint = {
    ...implementation,
    name: rpcName(implementation),
    handler: (request: Message) => parseValid(method.input, request, handler),
  };
  const pipeline = createPipeline<Message, Response>(endpoint, guard, limiter, tracing);
  return { method, maxRequestBytes, acceptsCompression, ...pipeline };
}
