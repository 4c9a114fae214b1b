import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Implementation } from "../../api/implementations.ts";
import type { Rpc } from "../../api/rpc.ts";
import type { CallCounter, Protocol } from "../call-metrics.ts";
import type { FastCall } from "./call.ts";

/** What an RPC returns; it need not be a message yet. */
export type Response = MessageInitShape<Implementation["method"]["output"]>;

/** Header names and values in turn: Node writes them without looking each one up. */
export type HeaderList = string[];

/** A complete response. */
export interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string | Uint8Array;
  /** HTTP/2 only. */
  readonly trailers?: Readonly<Record<string, string>>;
}

/** The request and response messages of an RPC as bytes. */
export interface Codec {
  /** Throws `INVALID_ARGUMENT`. */
  read(bytes: Uint8Array): Message;
  write(response: Response): string | Uint8Array;
}

/** An RPC in one protocol and encoding. */
export interface FastRoute {
  readonly rpc: Rpc;
  readonly protocol: Protocol;
  readonly counter: CallCounter;
  /** Largest request body in bytes. */
  readonly maxBodyBytes: number;
  /** The request header with the deadline of the call, where the protocol has one, and its value in milliseconds. */
  readonly deadline?: { readonly header: string; parse(value: string): number | undefined };
  /** Throws an error for `refuse`. */
  decode(bytes: Uint8Array): Message;
  answer(call: FastCall, response: Response): Answer;
  refuse(call: FastCall, error: ConnectError): Answer;
}
