import type { KeyObject } from "node:crypto";
import { digestAll } from "../credential/digest.ts";
import { parseSecret } from "../credential/issued-secret.ts";
import { classify } from "../credential/kinds.ts";
import type { JsonObject } from "../lib/json.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { type CredentialType, type Invalid, invalid } from "../record/verdict.ts";
import { type JwtVerdict, verifyJwt } from "../token/jwt/verify.ts";
import { verifyMacaroon } from "../token/macaroon/verify.ts";
import type { VerifyContext } from "./context.ts";
import { type Recognized, recognizedRawKey, recognizedSecret, recognizedToken } from "./recognized.ts";

type Recognize = (credential: string, context: VerifyContext) => MaybePromise<Recognized | Invalid>;

const RECOGNIZERS: Readonly<Record<CredentialType, Recognize>> = {
  ISSUED_API_KEY: recognizeSecret,
  IMPORTED_API_KEY: recognizeRawKey,
  JWT: recognizeJwt,
  MACAROON: recognizeMacaroon,
};

/** What a credential is, by itself: no key is read. A promise only if the public key of a JWT has to be fetched. */
export function recognize(credential: string, context: VerifyContext): MaybePromise<Recognized | Invalid> {
  return RECOGNIZERS[classify(credential, context.shapes).type](credential, context);
}

function recognizeSecret(credential: string, { rings }: VerifyContext): Recognized | Invalid {
  const parsed = parseSecret(credential, rings.tag);
  if (!parsed.ok) return invalid(parsed.reason, parsed.message);
  return recognizedSecret(parsed.keyId, digestAll(credential, rings.digest));
}

function recognizeRawKey(credential: string, { rings }: VerifyContext): Recognized {
  return recognizedRawKey(digestAll(credential, rings.digest));
}

/** A key that is not at hand is fetched by its `kid`, once, and the token then judged again from the start. */
function recognizeJwt(credential: string, context: VerifyContext): MaybePromise<Recognized | Invalid> {
  let fetched: Promise<KeyObject | undefined> | undefined;
  const verdict = judgeJwt(credential, context, (kid) => {
    const key = context.publicKey(kid);
    if (!(key instanceof Promise)) return key;
    fetched = key;
    return undefined;
  });
  if (fetched === undefined) return recognizeToken("JWT", verdict);
  return andThen(fetched, (key) =>
    recognizeToken(
      "JWT",
      judgeJwt(credential, context, () => key),
    ),
  );
}

function judgeJwt(
  credential: string,
  { issuer, clock }: VerifyContext,
  keys: (kid: string) => KeyObject | undefined,
): JwtVerdict {
  return verifyJwt(credential, { keys, issuer, now: clock.now() });
}

function recognizeMacaroon(credential: string, { rings, issuer, clock }: VerifyContext): Recognized | Invalid {
  return recognizeToken("MACAROON", verifyMacaroon(credential, { keys: rings.macaroonRoot, issuer, now: clock.now() }));
}

interface TokenContent {
  readonly tokenId: string;
  readonly keyId: string;
  readonly secretVersion: number;
  readonly expireTime: number;
  readonly scopes: readonly string[];
  readonly claims: JsonObject;
}

type TokenVerdict =
  | { readonly ok: true; readonly token: TokenContent }
  | {
      readonly ok: false;
      readonly reason: "INVALID_FORMAT" | "SIGNATURE_INVALID" | "EXPIRED";
      readonly message: string;
    };

function recognizeToken(credentialType: "JWT" | "MACAROON", verdict: TokenVerdict): Recognized | Invalid {
  if (!verdict.ok) return invalid(verdict.reason, verdict.message);
  const { tokenId, keyId, secretVersion, scopes, claims, expireTime } = verdict.token;
  return recognizedToken(credentialType, keyId, {
    tokenId,
    secretVersion,
    scopes,
    claims,
    expireTime: new Date(expireTime),
  });
}
