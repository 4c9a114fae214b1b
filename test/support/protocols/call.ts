import {
  create,
  createRegistry,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import { file_keyhold_v2alpha1_imported_api_keys } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { Json } from "../rest.ts";

export interface Success<O extends DescMessage> {
  readonly ok: true;
  readonly message: MessageShape<O>;
  /** Response headers; in gRPC the leading metadata. */
  readonly headers: Headers;
}

/** An error as received by a client of any protocol. */
export interface Failure {
  readonly ok: false;
  /** Name of the google.rpc.Code. */
  readonly code: string;
  readonly message: string;
  /** Details as JSON in snake_case by type name, such as `google.rpc.ErrorInfo`. */
  readonly details: Json;
  readonly headers: Headers;
}

export type Reply<O extends DescMessage = DescMessage> = Success<O> | Failure;

export type RequestHeaders = Readonly<Record<string, string>>;

/** Calls an RPC as a client of one protocol. Rejects only if there is no response. */
export type CallRpc = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  headers?: RequestHeaders,
) => Promise<Reply<O>>;

export interface Protocol {
  readonly name: string;
  readonly call: CallRpc;
  close(): void;
}

/** Returns the name of a google.rpc.Code. */
export function codeName(code: Code): string {
  if (code === Code.Canceled) return "CANCELLED";
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
}

export const detailTypes = createRegistry(file_google_rpc_error_details, file_keyhold_v2alpha1_imported_api_keys);

/** Decodes error details by type name. */
export function decodeDetails(details: readonly { readonly type: string; readonly value: Uint8Array }[]): Json {
  return Object.fromEntries(
    details.map(({ type, value }) => {
      const desc = detailTypes.getMessage(type);
      return [type, desc === undefined ? "of an unknown type" : messageJson(desc, fromBinary(desc, value))];
    }),
  );
}

/** Returns a response as JSON that is equal for all protocols. */
export function messageJson<D extends DescMessage>(desc: D, message: MessageShape<D>): Json {
  return toJson(desc, message, { useProtoFieldName: true, alwaysEmitImplicit: true, registry: detailTypes });
}

/** Returns a request as JSON in snake_case, with set fields only. */
export function requestJson<D extends DescMessage>(desc: D, init: MessageInitShape<D>): Json {
  return toJson(desc, create(desc, init), { useProtoFieldName: true });
}

/** Returns the response message of a call that must succeed, such as one that prepares the tested call. */
export function answered<O extends DescMessage>(reply: Reply<O>): MessageShape<O> {
  if (reply.ok) return reply.message;
  throw new Error(`${reply.code}: ${reply.message}`);
}
