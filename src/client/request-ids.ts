import { clone, create, type DescMessage, isMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import {
  BulkDisableApiKeysRequestSchema,
  BulkRevokeApiKeysRequestSchema,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  BatchCreateImportedApiKeysRequestSchema,
  CreateImportedApiKeyRequestSchema,
} from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { CreateIssuedApiKeyRequestSchema } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { withUnary } from "./transport.ts";

/** Requests with a `request_id` of their own. */
const SINGLE = [
  CreateIssuedApiKeyRequestSchema,
  CreateImportedApiKeyRequestSchema,
  BulkRevokeApiKeysRequestSchema,
  BulkDisableApiKeysRequestSchema,
] as const;

const WITH_REQUEST_ID: ReadonlySet<DescMessage> = new Set<DescMessage>([
  ...SINGLE,
  BatchCreateImportedApiKeysRequestSchema,
]);

/** Whether requests of this type, or their items, get a `request_id`. */
export function hasRequestId(desc: DescMessage): boolean {
  return WITH_REQUEST_ID.has(desc);
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
  const given = create(desc, input);
  if (requestsIn(given).every(({ requestId }) => requestId !== undefined)) return given as MessageInitShape<I>;
  const message = clone(desc, given);
  for (const request of requestsIn(message)) request.requestId ??= globalThis.crypto.randomUUID();
  return message as MessageInitShape<I>;
}

function requestsIn(message: Message): { requestId?: string }[] {
  if (isMessage(message, BatchCreateImportedApiKeysRequestSchema)) return message.requests;
  return SINGLE.some((schema) => isMessage(message, schema)) ? [message as Message & { requestId?: string }] : [];
}
