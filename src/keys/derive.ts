import { parseDuration } from "../domain/duration.ts";
import { checkAll, fieldError, invalidArgument } from "../domain/errors.ts";
import { newId } from "../domain/key.ts";
import { checkClaimsSize, MAX_CREDENTIAL_BYTES } from "../domain/limits.ts";
import { invalid, type Valid, type Verdict } from "../domain/verdict.ts";
import { equalJson, type JsonObject } from "../lib/json.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { checkCustomClaims } from "../token/jwt/claims.ts";
import { type JwtContent, mintJwt } from "../token/jwt/mint.ts";
import { checkRegisteredClaims } from "../token/jwt/registered-claims.ts";
import { mintMacaroon } from "../token/macaroon/mint.ts";
import type { MintedToken } from "../token/token.ts";
import type { DeriveContext, TokenLimits } from "./ports.ts";
import { credentialInvalid } from "./rejection.ts";

/** Milliseconds. */
const DEFAULT_TTL = 3_600_000;

export type TokenAlgorithm = "JWT" | "MACAROON";

export interface Derivation {
  readonly algorithm: TokenAlgorithm;
  /** A duration; undefined for 1 h. */
  readonly ttl: string | undefined;
  /** A subset of the parent's scopes; empty for all of them. */
  readonly scopes: readonly string[];
  /** A subset of the parent's audience, or any if it has none; empty for that of the parent. */
  readonly audience: readonly string[];
  readonly claims: JsonObject;
}

type ParsedDerivation = ReturnType<typeof parseDerivation>;

type Mint = (content: JwtContent, context: DeriveContext) => MaybePromise<MintedToken>;

const MINTS: Readonly<Record<TokenAlgorithm, Mint>> = {
  JWT: (content, { signer }) =>
    andThen(signer(content.expireTime), (signingKey) => mintJwt({ ...content, signingKey })),
  MACAROON: (content, { macaroonRoot }) => mintMacaroon({ ...content, rootKey: macaroonRoot.current }),
};

/** Returns the derivation with its lifetime in milliseconds. Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseDerivation(derivation: Derivation, { allowedClaims }: TokenLimits) {
  const { claims, ttl } = derivation;
  const [lifetime] = checkAll(
    () => (ttl === undefined ? DEFAULT_TTL : parseDuration(ttl, "ttl")),
    () => checkCustomClaims(claims),
    () => checkRegisteredClaims(claims, allowedClaims),
    () => checkClaimsSize(claims, "custom_claims"),
  );
  return { ...derivation, lifetime };
}

/**
 * Derives a token with at most the scopes, audience (empty: any) and lifetime of its parent. Errors are thrown, or reject if a signing key
 * had to be awaited.
 */
export function deriveToken(context: DeriveContext, credential: string, parent: Verdict, derivation: ParsedDerivation) {
  if (!parent.valid) throw credentialInvalid(parent);
  const { algorithm } = derivation;
  const content = contentOf(context, parent, derivation);
  const cacheToken = context.cacheToken(credential, parent);
  return andThen(MINTS[algorithm](content, context), (minted) => {
    const derived = toDerivedToken(content, minted);
    cacheToken(minted.token, algorithm, { ...content, expireTime: minted.expireTime });
    return derived;
  });
}

function contentOf(context: DeriveContext, parent: Valid, derivation: ParsedDerivation): JwtContent {
  const now = context.clock.now();
  return {
    issuer: context.issuer,
    tokenId: newId(now, context.random),
    issueTime: now,
    expireTime: Math.min(
      now + Math.min(derivation.lifetime, context.limits.maxTtl),
      parent.expireTime?.getTime() ?? Number.POSITIVE_INFINITY,
    ),
    scopes: narrowScopes(parent, derivation.scopes),
    keyId: parent.key.keyId,
    actorId: parent.key.actorId,
    audience: narrowAudience(parent, derivation.audience),
    secretVersion: parent.secretVersion,
    parentId: parent.token?.tokenId,
    claims: addClaims(parent.token?.claims ?? {}, derivation.claims),
  };
}

function toDerivedToken(
  { tokenId, scopes, audience = [], claims, issueTime }: JwtContent,
  { token, expireTime }: MintedToken,
) {
  if (expireTime <= issueTime)
    throw credentialInvalid(invalid("EXPIRED", "the credential expires before the token would become valid"));
  if (Buffer.byteLength(token) > MAX_CREDENTIAL_BYTES) {
    throw invalidArgument(
      "scopes",
      `the token would exceed ${MAX_CREDENTIAL_BYTES} bytes with these scopes, the audience and custom_claims; request fewer scopes`,
      "TOO_LARGE",
    );
  }
  return { token, tokenId, expireTime: new Date(expireTime), scopes, audience, claims };
}

function narrowScopes(parent: Valid, wanted: readonly string[]): readonly string[] {
  if (wanted.length === 0) return parent.scopes;
  const excess = wanted.find((scope) => !parent.scopes.includes(scope));
  if (excess === undefined) return [...new Set(wanted)];
  throw fieldError("SCOPE_NOT_ALLOWED", "scopes", `the credential does not have ${excess}`, { scope: excess });
}

/** Returns undefined for any audience. */
function narrowAudience({ token }: Valid, wanted: readonly string[]): readonly string[] | undefined {
  const inherited = token?.audience;
  if (wanted.length === 0) return inherited;
  const excess = wanted.find((service) => inherited?.includes(service) === false);
  if (excess === undefined) return [...new Set(wanted)];
  throw fieldError("AUDIENCE_NOT_ALLOWED", "audience", `the credential is not for ${excess}`, { audience: excess });
}

/** Inherited claims cannot be overridden: a token derived from a token may add claims only. */
function addClaims(inherited: JsonObject, added: JsonObject): JsonObject {
  const changed = Object.entries(added).find(([name, value]) => {
    const stated = Object.hasOwn(inherited, name) ? inherited[name] : undefined;
    return stated !== undefined && !equalJson(stated, value);
  })?.[0];
  if (changed === undefined) return { ...inherited, ...added };
  throw fieldError("CLAIM_NOT_ALLOWED", "custom_claims", `the credential has a different value for ${changed}`);
}
