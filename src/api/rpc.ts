import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Principal } from "../domain/principal.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";

/** A call as seen by its RPC, independent of the protocol. */
export interface Call {
  /** The request id: answered as `x-request-id`, and `reqId` in the log. */
  readonly id: string;
  /** Returns a request header or gRPC metadata by its lower-case name; several values are joined by ", ". */
  header(name: string): string | undefined;
  /** Sets a response header (leading metadata in gRPC). */
  setHeader(name: string, value: string): void;
  /** Sets trailing metadata: a trailer in gRPC, a header with the prefix `trailer-` in Connect; REST has none. */
  setTrailer(name: string, value: string): void;
  /** The IP address of the peer, which may be a proxy. Empty if the connection is closed. */
  readonly peerAddress: string;
  /** The subject of the client certificate, verified by the CA of gateways; undefined without one. */
  readonly certificateSubject?: string | undefined;
  /** Maximum size in bytes of a list in the details of an error. Absent: the limit of responses, because they are in the body. */
  readonly maxDetailBytes?: number;
  /** Whether probably nobody waits for the response any more: the client has disconnected, or its deadline has passed. */
  readonly isAbandoned: boolean;
  readonly log: CallLog;
}

/** The log entry of a call. Never contains a secret. */
export interface CallLog {
  /** Adds fields to the log entry. */
  add(fields: Readonly<Record<string, string>>): void;
  /** The call has verified credentials, and all of them are valid: its entry may be left out. Without the call, it never is. */
  accepted(): void;
  /** Writes a separate line with the fields so far and these. */
  note(message: string, fields: Readonly<Record<string, unknown>>): void;
  /** Logs an internal error with its cause. */
  fault(error: unknown): void;
  /** Logs that an outage of the database has failed the call. */
  outage(cause: unknown): void;
  /** Calls the listener when the call has ended or the client has disconnected. At most one listener. */
  onEnd(listener: EndListener): void;
}

/** Receives the outcome of a call: the name of its gRPC code, and its protocol. */
export type EndListener = (code: string, protocol: string) => void;

/**
 * Authorization, validation and implementation behind two functions, which throw or reject only with a `ConnectError`, whose code and
 * details every transport formats. A cached answer is returned at once, without a promise.
 */
export interface Pipeline<Request, Response> {
  /**
   * Authorizes the call. Called before the body is read, which may take 4 MiB, and again when it is complete unless that is in the same
   * tick: a credential may be revoked while the body is in transit.
   */
  admit(call: Call): MaybePromise<Principal>;
  /** Processes the request of an authorized call. */
  invoke(request: Request, principal: Principal, call: Call): MaybePromise<Response>;
}

/** A unary RPC for the transports, with the limits of its `RpcRow`. */
export interface Rpc<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage>
  extends Pipeline<MessageShape<I>, MessageInitShape<O>> {
  readonly method: DescMethodUnary<I, O>;
  readonly maxRequestBytes: number;
  readonly acceptsCompression?: boolean;
  /** Reads a binary message of an admitted call itself; it is not decoded otherwise, and `invoke` gets an empty message. Must not throw. */
  readBinary?(message: Uint8Array, call: Call): void;
}

/** A call whose response is a stream. */
export interface StreamCall extends Call {
  /** Aborts at the deadline of the call; undefined in a protocol without deadlines. */
  readonly deadline?: AbortSignal;
  /** Calls the listener when the client disconnects. Returns a function that removes the listener. */
  onDisconnect(listener: () => void): () => void;
}

/** A server-streaming RPC for the transports, with the limits of its `RpcRow`. */
export interface StreamRpc<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage>
  extends Pick<Pipeline<MessageShape<I>, MessageInitShape<O>>, "admit"> {
  readonly method: DescMethodServerStreaming<I, O>;
  readonly maxRequestBytes: number;
  readonly acceptsCompression?: boolean;
  /** Yields the responses to the request of an authorized call. Throws only a `ConnectError`. Nothing is read ahead of the consumer. */
  stream(request: MessageShape<I>, principal: Principal, call: StreamCall): AsyncGenerator<MessageInitShape<O>, void>;
}
