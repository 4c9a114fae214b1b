import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Principal } from "../domain/principal.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";

/** What an RPC may know of the call that carries it. It never learns which protocol that was. */
export interface Call {
  /** The request id: answered as `x-request-id`, and `reqId` in the log. */
  readonly id: string;
  /** A request header or piece of gRPC metadata by its lower-case name; several values come joined by ", ". */
  header(name: string): string | undefined;
  /** All request headers (gRPC metadata), with lower-case names; several values of a name come joined by ", ". */
  headers(): Iterable<readonly [name: string, value: string]>;
  /** Sets a response header (leading metadata in gRPC). */
  setHeader(name: string, value: string): void;
  /** Sets trailing metadata: a trailer in gRPC, a header with the prefix `trailer-` in Connect; REST has none. */
  setTrailer(name: string, value: string): void;
  /** Aborted when the caller has gone or its deadline has passed. */
  readonly signal: AbortSignal;
  /** The IP address that the connection comes from: of a proxy, where one is in between. Empty if it is closed. */
  readonly peerAddress: string;
  readonly log: CallLog;
}

/** The log entry of a call. Never contains a secret. */
export interface CallLog {
  /** Facts for the line that every call has. */
  add(facts: Readonly<Record<string, string>>): void;
  /** A line of its own, with the facts of the call so far and these. */
  note(message: string, facts: Readonly<Record<string, unknown>>): void;
  /** Logs an internal error with its cause. */
  fault(error: unknown): void;
  /** Calls the listener when the call has ended or the client has disconnected. At most one listener. */
  onEnd(listener: EndListener): void;
}

/** Receives the outcome of a call: the name of its gRPC code, and its protocol. */
export type EndListener = (code: string, protocol: string) => void;

/**
 * A unary RPC as the transports see it: authorization, validation and the implementation behind two functions, which throw or
 * reject with a `ConnectError` alone, whose code and details every transport writes in its own form. A cached answer is returned
 * at once, without a promise.
 */
export interface Rpc<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly method: DescMethodUnary<I, O>;
  /** Largest request body in bytes. */
  readonly maxRequestBytes: number;
  /** Whether request bodies may be compressed; by default they may. */
  readonly acceptsCompression?: boolean;
  /**
   * Returns whether the caller may make this call. Asked before the body is read, which may take 16 MiB; and once more when it is
   * complete, unless that is in the same turn of the event loop: a credential may be revoked while the body is on the wire.
   */
  admit(call: Call): MaybePromise<Principal>;
  /** Answers the request of a call that was admitted. */
  invoke(request: MessageShape<I>, principal: Principal, call: Call): MaybePromise<MessageInitShape<O>>;
}
