import type { DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Authority } from "../keys/authority.ts";
import type { KeysContext } from "../keys/context.ts";
import type { DeriveContext } from "../keys/derive.ts";
import type { Verdict } from "../record/verdict.ts";
import type { Jwks } from "../token/jwks.ts";
import type { Call } from "./rpc.ts";

/** What the implementations work with. */
export interface ApiContext {
  readonly keys: KeysContext;
  readonly derive: DeriveContext;
  readonly issuer: string;
  verify(credential: string): Promise<Verdict>;
  verifyAll(credentials: readonly string[]): Promise<Verdict[]>;
  jwks(): Jwks;
}

/** What comes with a request. */
export interface HandlerCall {
  readonly call: Call;
  /** What the caller may do to keys that are rights over Keyhold. */
  readonly authority: Authority;
}

/** The implementation of an RPC. Its request has been authorized and validated; what it throws is mapped to the wire later. */
export type Handler<M extends DescMethodUnary> = (
  request: MessageShape<M["input"]>,
  call: HandlerCall,
) => Promise<MessageInitShape<M["output"]>>;
