import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { ActorsContext } from "../actors/actors.ts";
import type { AuditFeed } from "../audit/feed.ts";
import type { AuditContext } from "../audit/log.ts";
import type { TreeContext } from "../audit/tree/tree.ts";
import type { Policy } from "../domain/admin-scopes.ts";
import type { KeyPagePermission } from "../domain/key-page.ts";
import type { Principal } from "../domain/principal.ts";
import type { Verdict } from "../domain/verdict.ts";
import type { HmacKeysContext } from "../hashing/hmac-keys.ts";
import type { KeyPagesContext } from "../keys/key-page.ts";
import type { DeriveContext, KeysContext } from "../keys/ports.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import type { Jwks } from "../token/jwks.ts";
import type { UsageContext } from "../usage/usage.ts";
import type { Presentation } from "../verify/context.ts";
import type { ExplainedSubject, Explanation } from "../verify/explain.ts";
import type { CacheMode } from "../verify/reader.ts";
import type { VerificationRequest } from "../verify/verify.ts";
import type { WebhooksContext } from "../webhooks/endpoints.ts";
import type { Call } from "./rpc.ts";

export interface ApiContext {
  readonly actors: ActorsContext;
  readonly audit: AuditContext;
  readonly keys: KeysContext;
  readonly auditFeed: Pick<AuditFeed, "watch">;
  readonly auditTree: TreeContext;
  readonly derive: DeriveContext;
  readonly hmacKeys: HmacKeysContext;
  readonly keyPages: KeyPagesContext;
  readonly usage: UsageContext;
  readonly webhooks: WebhooksContext;
  readonly issuer: string;
  /** For a restricted caller, keys of other actors do not exist. */
  verify(caller: Principal, credential: string, mode?: CacheMode, presentation?: Presentation): MaybePromise<Verdict>;
  /** The same without stale verdicts, for calls that do more than return the verdict. */
  verifyStrictly(caller: Principal, credential: string, presentation?: Presentation): MaybePromise<Verdict>;
  /** The same for self-revocation, which must not wait behind other verifications. */
  verifyReserved(caller: Principal, credential: string): MaybePromise<Verdict>;
  verifyAll(caller: Principal, requests: readonly VerificationRequest[], mode?: CacheMode): MaybePromise<Verdict[]>;
  /** Explains a credential, or the current secret of a key; null if there is no such key for the caller. */
  explain(caller: Principal, subject: ExplainedSubject, presentation: Presentation): Promise<Explanation | null>;
  jwks(): MaybePromise<Jwks>;
  /** Admits a change, or keys to import, by Keyhold's own limits. Throws or rejects with `RATE_LIMITED`. */
  admitChange(limit: "changes" | "imports", caller: Principal, cost: number): MaybePromise<void>;
  /** Returns the RPCs that a caller may call, such as `keyhold.v2alpha1.ApiKeysService/RevokeApiKey`, in alphabetical order. */
  permittedRpcs(caller: Principal): readonly string[];
  /** Receives a caller that may not do what its call was to do. */
  onDenied(caller: Principal): void;
  /** Whether the server is stopping, so that long work should end soon. */
  isStopping(): boolean;
}

/**
 * The implementation of an RPC. Parses the request, and returns the function that executes it. Throws `INVALID_ARGUMENT` with every field that
 * breaks a rule which is not in the proto and needs no database. It also parses requests that break a rule in the proto, so that all
 * violations are reported; these are not executed. Its errors are mapped to the wire later.
 */
export type Handler<M extends DescMethodUnary> = (
  request: MessageShape<M["input"]>,
) => (principal: Principal, call: Call) => MaybePromise<MessageInitShape<M["output"]>>;

/**
 * Effect of a retry (docs/api.md, "Retries and idempotency"). The first two are also the `idempotency_level` in the proto; `request_id`:
 * no further effect if the request has one (AIP-155).
 */
export type Idempotency = "no side effects" | "idempotent" | "request_id" | "none";

export interface RpcRow<M extends DescMethodUnary = DescMethodUnary> {
  readonly policy: Policy;
  /**
   * For resources that belong to no actor: what an actor-restricted caller cannot do, as completes the message of `requireUnrestricted`, such
   * as `manage HMAC keys`. Such a caller is denied whatever its scopes.
   */
  readonly unrestricted?: string;
  /** What a session of the key page must permit for the RPC; `VIEW`: nothing. Absent: no session may call it, whatever its scopes. */
  readonly keyPage?: KeyPagePermission | "VIEW";
  readonly idempotency: Idempotency;
  /** Largest request in bytes; 1 MiB by default. */
  readonly maxRequestBytes?: number;
  /** Whether request bodies may be compressed; true by default. */
  readonly acceptsCompression?: boolean;
  /**
   * Whether it may answer from the cache and has no side effects: under overload the call is started, and rejected only if it has to
   * wait. False by default: it is rejected before it starts.
   */
  readonly mayAnswerFromCache?: boolean;
  /** Whether capacity is reserved for it, so that a flood of other calls does not keep it from being executed. False by default. */
  readonly isReserved?: boolean;
  /** Returns the number of keys that a call imports, for the limit on imports; every other change counts as one. */
  imports?(request: MessageShape<M["input"]>): number;
  /** Returns the share of the concurrency limit that a call takes while it waits; 1 by default. */
  cost?(request: MessageShape<M["input"]>): number;
  /**
   * Returns the key of a successful call, for its log entry. After a failure the field `key_id` is not logged, because it may contain a
   * secret. Handlers log further fields themselves.
   */
  keyId?(request: MessageShape<M["input"]>, response: MessageInitShape<M["output"]>): string | undefined;
}

export interface Implementation<M extends DescMethodUnary = DescMethodUnary> extends RpcRow<M> {
  readonly method: M;
  readonly handler: Handler<M>;
}

export interface TableRow<M extends DescMethodUnary = DescMethodUnary> extends RpcRow<M> {
  implement(context: ApiContext): Handler<M>;
}

/**
 * The implementation of a server-streaming RPC, which parses its request like a `Handler`. The signal aborts when the client disconnects, its
 * deadline passes or the server stops: what the iterator awaits must end then. The header of the response waits for the first message.
 */
export type StreamHandler<M extends DescMethodServerStreaming> = (
  request: MessageShape<M["input"]>,
) => (
  principal: Principal,
  call: Call,
  signal: AbortSignal,
) => MaybePromise<AsyncIterable<MessageInitShape<M["output"]>>>;

export interface StreamImplementation<M extends DescMethodServerStreaming = DescMethodServerStreaming>
  extends StreamRpcRow {
  readonly method: M;
  readonly handler: StreamHandler<M>;
}

/** A stream takes no share of the concurrency limit while it waits. */
type StreamRpcRow = Pick<
  RpcRow,
  "policy" | "unrestricted" | "keyPage" | "idempotency" | "maxRequestBytes" | "acceptsCompression"
>;

export interface StreamRow<M extends DescMethodServerStreaming = DescMethodServerStreaming> extends StreamRpcRow {
  implement(context: ApiContext): StreamHandler<M>;
}

/**
 * A row for each method of a service, by its name in TypeScript. Each message of a bidirectional stream is a call of a unary RPC, which has
 * the implementation.
 */
export type ServiceRows<S extends DescService> = {
  readonly [Name in keyof S["method"]]: S["method"][Name] extends DescMethodUnary
    ? TableRow<S["method"][Name]>
    : S["method"][Name] extends DescMethodServerStreaming
      ? StreamRow<S["method"][Name]>
      : RpcRow;
};

/** Returns the cost of a request with this many items, or for a page of that size: as much as a single call for each ten. */
export function costOfItems(count: number): number {
  return Math.ceil(count / 10);
}
