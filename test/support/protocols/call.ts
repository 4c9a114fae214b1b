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
  /** Headers, of gRPC the leading metadata. */
  readonly headers: Headers;
}

/** An error as a client of any protocol reads it. */
export interface Failure {
  readonly ok: false;
  /** The name in google.rpc.Code. */
  readonly code: string;
  readonly message: string;
  /** JSON in snake_case by the name of the type, such as `google.rpc.ErrorInfo`. */
  readonly details: Json;
  readonly headers: Headers;
}

export type Reply<O extends DescMessage = DescMessage> = Success<O> | Failure;

export type RequestHeaders = Readonly<Record<string, string>>;

/** Calls an RPC as a client of one protocol does. Rejects only when there is no answer at all. */
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

/** The name of a code in google.rpc.Code. */
export function codeName(code: Code): string {
  if (code === Code.Canceled) return "CANCELLED";
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
}

export const detailTypes = createRegistry(file_google_rpc_error_details, file_keyhold_v2alpha1_imported_api_keys);

/** Error details from their bytes, by the name of their type. */
export function decodeDetails(details: readonly { readonly type: string; readonly value: Uint8Array }[]): Json {
  return Object.fromEntries(
    details.map(({ type, value }) => {
      const desc = detailTypes.getMessage(type);
      return [type, desc === undefined ? "of a type that is not known" : messageJson(desc, fromBinary(desc, value))];
    }),
  );
}

/** An answer as JSON that looks the same for every protocol. */
export function messageJson<D extends DescMessage>(desc: D, message: MessageShape<D>): Json {
  return toJson(desc, message, { useProtoFieldName: true, alwaysEmitImplicit: true, registry: detailTypes });
}

/** A request as JSON in snake_case, with what is set alone. */
export function requestJson<D extends DescMessage>(desc: D, init: MessageInitShape<D>): Json {
  return toJson(desc, create(desc, init), { useProtoFieldName: true });
}

/** The answer's message; for the calls that lead up to the one that is tested. */
export function answered<O extends DescMessage>(reply: Reply<O>): MessageShape<O> {
  if (reply.ok) return reply.message;
  throw new Error(`${reply.code}: ${reply.message}`);
}
