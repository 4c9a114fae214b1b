import { digestAll } from "../credential/digest.ts";
import { parseSecret } from "../credential/issued-secret.ts";
import { classify } from "../credential/kinds.ts";
import { type CredentialType, type Invalid, invalid, type Valid } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import type { VerificationKey } from "../token/jwt/signing-keys.ts";
import { verifyJwt } from "../token/jwt/verify.ts";
import { verifyMacaroon } from "../token/macaroon/verify.ts";
import type { RejectedToken, TokenContent, TokenVerdict } from "../token/token.ts";
import { CachedCredential } from "./cache/cached-credential.ts";
import type { VerifyContext } from "./context.ts";
import { type Identified, identifiedRawKey, identifiedSecret, identifiedToken } from "./identified.ts";

/** Identifies a credential of one type by its format and signature. */
type Identify = (credential: string, context: VerifyContext) => MaybePromise<Identified | Invalid>;

const METHODS: Readonly<Record<CredentialType, Identify>> = {
  ISSUED_API_KEY: identifySecret,
  IMPORTED_API_KEY: identifyRawKey,
  JWT: identifyJwt,
  MACAROON: identifyMacaroon,
};

/**
 * Identifies a credential without reading its key. Returns a promise only if the public key of a JWT must be loaded, which rejects if that
 * fails.
 */
export function identify(context: VerifyContext, credential: string): MaybePromise<Identified | Invalid> {
  return METHODS[classify(credential, context.shapes).type](credential, context);
}

/**
 * Returns a function that caches a token derived from this credential, whose verdict is `parent`, unless its key changes, or all credentials are evicted, in between. It does
 * so only if the credential is cached.
 */
export function tokenCacher({ credentials }: Pick<VerifyContext, "credentials">, credential: string, parent: Valid) {
  const generation = credentials?.generation ?? 0;
  const cached = parent instanceof CachedCredential ? parent : credentials?.find(credentials.nameOf(credential));
  return (token: string, credentialType: "JWT" | "MACAROON", content: TokenContent): void => {
    if (credentials === null || cached === undefined) return;
    const { tokenId, secretVersion, scopes, audience, expireTime } = content;
    // As the token states them: JSON has no -0, for one.
    const claims = JSON.parse(JSON.stringify(content.claims));
    const identified = { credentialType, token: { tokenId, secretVersion, scopes, claims, audience, expireTime } };
    const { stored, secret } = cached.loaded;
    credentials.set(credentials.nameOf(token), { identified, stored, secret, adoption: null }, generation);
  };
}

function identifySecret(credential: string, { rings }: VerifyContext): Identified | Invalid {
  const parsed = parseSecret(credential, rings.tag);
  if (!parsed.ok) return invalid(parsed.reason, parsed.message);
  return identifiedSecret(parsed.keyId, digestAll(credential, rings.digest));
}

function identifyRawKey(credential: string, { rings }: VerifyContext): Identified {
  return identifiedRawKey(digestAll(credential, rings.digest));
}

/** Loads a missing public key by its `kid` once, then verifies the token again. */
function identifyJwt(credential: string, context: VerifyContext): MaybePromise<Identified | Invalid> {
  let fetched: Promise<VerificationKey | undefined> | undefined;
  const verdict = evaluateJwt(credential, context, (kid) => {
    const key = context.publicKey(kid);
    if (!(key instanceof Promise)) return key;
    fetched = key;
    return undefined;
  });
  if (fetched === undefined) return identifyToken("JWT", verdict);
  return andThen(fetched, (key) =>
    identifyToken(
      "JWT",
      evaluateJwt(credential, context, () => key),
    ),
  );
}

function evaluateJwt(
  credential: string,
  { issuer, clock }: VerifyContext,
  keys: (kid: string) => VerificationKey | undefined,
): TokenVerdict {
  return verifyJwt(credential, { keys, issuer, now: clock.now() });
}

function identifyMacaroon(credential: string, { rings, issuer, clock }: VerifyContext): Identified | Invalid {
  return identifyToken("MACAROON", verifyMacaroon(credential, { keys: rings.macaroonRoot, issuer, now: clock.now() }));
}

function identifyToken(credentialType: "JWT" | "MACAROON", verdict: TokenVerdict): Identified | Invalid {
  // Whether the key of an expired token exists and is revoked comes before its expiry, which `evaluate` tests.
  const token = verdict.ok ? verdict.token : verdict.expired;
  if (token !== undefined) return identifiedToken(credentialType, token.keyId, token);
  const { reason, message } = verdict as RejectedToken;
  return invalid(reason, message);
}
