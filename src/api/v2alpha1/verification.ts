import { fromJson, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { KeyStatus } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  CredentialType,
  VerificationError,
  type VerifyApiKeyResponseSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { chargedLimits, type LimitStatus } from "../../domain/rate-limit.ts";
import { errorSize, responseSize } from "../../domain/response-size.ts";
import {
  type EncodedAnswers,
  type Invalid,
  type Valid,
  type Verdict,
  verificationErrorOf,
} from "../../domain/verdict.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { CacheMode } from "../../verify/reader.ts";
import type { Call } from "../rpc.ts";
import { timestamp } from "./key-resources.ts";
import { limitStatuses } from "./rate-limits.ts";

/** Returns the cache mode requested by `Cache-Control` (RFC 9111 §5.2.1), as a header or gRPC metadata. Ignores other directives. */
export function cacheModeOf(call: Call): CacheMode {
  const header = call.header("cache-control");
  if (header === undefined) return "default";
  const directives = header.toLowerCase().split(",").map(nameOf);
  if (directives.includes("no-store")) return "no-store";
  return directives.includes("no-cache") ? "no-cache" : "default";
}

function nameOf(directive: string): string {
  const [name = ""] = directive.split("=");
  return name.trim();
}

/** A response, with what the fast path encodes in its own way. */
export type Verification = MessageInitShape<typeof VerifyApiKeyResponseSchema> & {
  readonly limitStates?: readonly LimitStatus[];
  /** The response to the credential, if it were accepted. */
  readonly accepted?: Verification;
};

/** Returns the response to a verdict, which says why a credential is invalid, and nothing about its key. */
export function verificationOf(verdict: Verdict, issuer: string): Verification {
  if (verdict.valid) return new ValidResponse(verdict, issuer);
  const { missingScopes = [], limits = [], credential } = verdict;
  // With the identity, so that the caller can answer 403 or 429 and log who it was.
  const hasIdentity = credential !== undefined && (missingScopes.length > 0 || limits.length > 0);
  return hasIdentity ? new DeniedResponse(verdict, credential, issuer) : rejection(verdict);
}

function rejection({ reason, message, isStale }: Invalid) {
  const errorCode = VerificationError[verificationErrorOf(reason)];
  return { isValid: false, errorCode, errorMessage: message, ...(isStale && { stale: true }) };
}

/** Returns an upper bound of the size of a response in Protobuf. */
export function verificationSize(verdict: Verdict, issuer: string): number {
  if (!verdict.valid) {
    const { message, missingScopes = [], limits = [], credential } = verdict;
    const hasIdentity = missingScopes.length > 0 || limits.length > 0;
    const identity = hasIdentity && credential !== undefined ? verificationSize(credential, issuer) : 0;
    return identity + errorSize(message) + missingScopes.reduce((sum, scope) => sum + scope.length + 3, 0);
  }
  const { answers, credentialType } = verdict;
  const isToken = credentialType === "JWT" || credentialType === "MACAROON";
  const claims = isToken ? claimsSize(verdict.token?.claims ?? {}) : 0;
  return (answers?.size ?? keySize(verdict)) + Buffer.byteLength(issuer) + claims;
}

function keySize(credential: Valid): number {
  const { actorId, metadata } = credential.key;
  return responseSize({ actorId, metadata, scopes: credential.scopes, limits: chargedLimits(credential) });
}

/** The response to a valid credential. Its fields are read on use: with an encoded answer none is. */
class ValidResponse {
  readonly isValid: boolean = true;
  readonly status = KeyStatus.ACTIVE;
  readonly issuer: string;
  readonly #verdict: Valid;

  constructor(verdict: Valid, issuer: string) {
    this.#verdict = verdict;
    this.issuer = issuer;
  }

  get answers(): EncodedAnswers | undefined {
    return this.#verdict.answers;
  }

  get keyId() {
    return this.#verdict.keyId;
  }

  get actorId() {
    return this.#verdict.key.actorId;
  }

  get scopes() {
    return [...this.#verdict.scopes];
  }

  get metadata() {
    return { ...this.#verdict.key.metadata };
  }

  get expireTime() {
    return timestamp(this.#verdict.expireTime);
  }

  get credentialType() {
    return CredentialType[this.#verdict.credentialType];
  }

  get claims() {
    const { token } = this.#verdict;
    return token === null ? undefined : { ...token.claims };
  }

  get limits() {
    return limitStatuses(this.limitStates);
  }

  get limitStates() {
    return this.#verdict.limits ?? [];
  }

  get stale() {
    return this.#verdict.isStale;
  }
}

/** The response to a credential that lacks scopes, or whose limits are exceeded. */
class DeniedResponse extends ValidResponse {
  override readonly isValid = false;
  readonly errorCode: VerificationError;
  readonly errorMessage: string;
  readonly missingScopes: string[];
  readonly accepted: ValidResponse;
  readonly #verdict: Invalid;

  constructor(verdict: Invalid, credential: Valid, issuer: string) {
    super(credential, issuer);
    this.#verdict = verdict;
    this.accepted = new ValidResponse(credential, issuer);
    this.errorCode = VerificationError[verificationErrorOf(verdict.reason)];
    this.errorMessage = verdict.message;
    this.missingScopes = [...(verdict.missingScopes ?? [])];
  }

  /** Those of the credential are not its own. */
  override get answers() {
    return undefined;
  }

  override get limitStates() {
    return this.#verdict.limits ?? [];
  }

  override get stale() {
    return this.#verdict.isStale;
  }
}

function claimsSize(claims: JsonObject): number {
  return Object.keys(claims).length === 0 ? 0 : toBinary(StructSchema, fromJson(StructSchema, { ...claims })).length;
}
