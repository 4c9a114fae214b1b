import { clone, create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { withUnary } from "./transport.ts";

type WithRequestId = Message & { requestId?: string };

/** Whether requests of this type, or their items, get a `request_id`. */
export function hasRequestId({ field }: DescMessage): boolean {
  return field.requestId !== undefined || field.requests?.message?.field.requestId !== undefined;
}

/** Adds a `request_id` (AIP-155) to each request that creates a key, or changes many, and has none. Retries of the call reuse it. */
export function withRequestIds(transport: Transport): Transport {
  return withUnary(transport, (method, signal, timeoutMs, header, input, values) =>
    transport.unary(method, signal, timeoutMs, header, addRequestIds(method.input, input), values),
  );
}

/** Returns a copy if an id is missing: the caller may reuse its message for another call. */
function addRequestIds<I extends DescMessage>(desc: I, input: MessageInitShape<I>): MessageInitShape<I> {
  if (!hasRequestId(desc)) return input;
  const request = create(desc, input);
  if (requestsIn(desc, request).every(({ requestId }) => requestId !== undefined))
    return request as MessageInitShape<I>;
  const message = clone(desc, request);
  for (const item of requestsIn(desc, message)) item.requestId ??= globalThis.crypto.randomUUID();
  return message as MessageInitShape<I>;
}

function requestsIn({ field }: DescMessage, message: Message): readonly WithRequestId[] {
  if (field.requestId !== undefined) return [message];
  return (message as Message & { requests: WithRequestId[] }).requests;
}
