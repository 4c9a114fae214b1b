import type { IncomingHttpHeaders } from "node:http";
import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import type { Implementation } from "../../api/implementations.ts";
import type { Rpc } from "../../api/rpc.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import type { CallKind, LaneCall } from "./call.ts";
import type { Answer, Exchange } from "./exchange.ts";

/** What an RPC answers; it need not be a message yet. */
export type Response = MessageInitShape<Implementation["method"]["output"]>;

export type RequestHeaders = Readonly<IncomingHttpHeaders & Record<string, string | string[] | undefined>>;

/** What serves a request; undefined: the lane does not. `url` is the request target. */
export type FindRoute = (method: string, url: string, headers: RequestHeaders) => Route | undefined;

/** An RPC in one protocol and codec: what the bytes of a call mean. */
export interface Route extends CallKind {
  readonly rpc: Rpc;
  /** Largest request body in bytes. */
  readonly maxBodyBytes: number;
  /** Milliseconds that the caller will wait; undefined for as long as it takes. Throws if the header is malformed. */
  timeout(exchange: Exchange): number | undefined;
  /** Throws an error for `refuse`. */
  decode(bytes: Uint8Array): Message;
  /** The error of a body above `maxBodyBytes`. */
  tooLarge(): Error;
  answer(call: LaneCall, response: Response): MaybePromise<Answer>;
  refuse(call: LaneCall, error: unknown): MaybePromise<Answer>;
}
