import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Authority } from "../keys/authority.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";

/** What an RPC may know of the call that carries it. It never learns which protocol that was. */
export interface Call {
  /** A request header or piece of gRPC metadata by its lower-case name; several values come joined by ", ". */
  header(name: string): string | undefined;
  /** Sets a response header (leading metadata in gRPC). */
  setHeader(name: string, value: string): void;
  /** Aborted when the caller has gone or its deadline has passed. */
  readonly signal: AbortSignal;
  readonly log: CallLog;
}

/** What the log is told of a call. Never a secret. */
export interface CallLog {
  /** Facts for the line that every call has. */
  add(facts: Readonly<Record<string, string>>): void;
  /** A fault of ours, with its cause. */
  fault(error: unknown): void;
  /** Calls the listener when the call has been answered, or its caller has gone. At most one listener. */
  onEnd(listener: EndListener): void;
}

/** Told how a call ended: the name of its gRPC code, and the protocol that carried it. */
export type EndListener = (code: string, protocol: string) => void;

/** A call that its caller may make. */
export interface AdmittedCall {
  readonly call: Call;
  /** What the caller may do to keys that are rights over Keyhold. */
  readonly authority: Authority;
}

/**
 * A unary RPC as the transports see it: authorization, validation and the implementation behind two functions, which throw or
 * reject with a `ConnectError` alone, whose code and details every transport writes in its own form. What is at hand is answered
 * at once, without a promise.
 */
export interface Rpc<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly method: DescMethodUnary<I, O>;
  /** Largest request body in bytes. */
  readonly maxRequestBytes: number;
  /**
   * Says whether the caller may make this call. To be asked before the request is read: reading one may take 16 MiB, which is
   * not for everyone to ask for.
   */
  admit(call: Call): MaybePromise<AdmittedCall>;
  /** Answers the request of a call that was admitted. */
  invoke(request: MessageShape<I>, admitted: AdmittedCall): MaybePromise<MessageInitShape<O>>;
}
