import type { DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Principal } from "../domain/principal.ts";
import type { Verdict } from "../domain/verdict.ts";
import type { KeysContext } from "../keys/context.ts";
import type { DeriveContext } from "../keys/derive.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { Jwks } from "../token/jwks.ts";
import type { CacheMode } from "../verify/reader.ts";
import type { Call } from "./rpc.ts";

/** Dependencies of the implementations. */
export interface ApiContext {
  readonly keys: KeysContext;
  readonly derive: DeriveContext;
  readonly issuer: string;
  verify(credential: string, mode?: CacheMode): MaybePromise<Verdict>;
  /** The same without stale verdicts, for calls that do more than return the verdict. */
  verifyStrictly(credential: string): MaybePromise<Verdict>;
  verifyAll(credentials: readonly string[], mode?: CacheMode): MaybePromise<Verdict[]>;
  jwks(): MaybePromise<Jwks>;
}

/** The implementation of an RPC. Its request has been authorized and validated; its errors are mapped to the wire later. */
export type Handler<M extends DescMethodUnary> = (
  request: MessageShape<M["input"]>,
  principal: Principal,
  call: Call,
) => MaybePromise<MessageInitShape<M["output"]>>;
