import type { KeyObject } from "node:crypto";
import { digestAll, digestEquals } from "../credential/digest.ts";
import { parseSecret } from "../credential/issued-secret.ts";
import { classify } from "../credential/kinds.ts";
import type { JsonObject } from "../lib/json.ts";
import type { KeyKind, KeySecret } from "../record/key.ts";
import { type CredentialType, type Invalid, invalid } from "../record/verdict.ts";
import { verifyJwt } from "../token/jwt/verify.ts";
import { verifyMacaroon } from "../token/macaroon/verify.ts";
import type { VerifyContext } from "./context.ts";
import type { KeyLookup } from "./reader.ts";

/** A credential that is ours by its form and signature. Whether its key still lives is for `judge` to say. */
export interface Recognized {
  readonly credentialType: CredentialType;
  readonly lookup: KeyLookup;
  /** The kind that the key must be of; null for either. */
  readonly kind: KeyKind | null;
  /** Whether this secret of the key is the one that the credential is, or was derived from. */
  readonly belongsTo: (secret: KeySecret) => boolean;
  readonly token: TokenFacts | null;
}

export interface TokenFacts {
  readonly tokenId: string;
  readonly scopes: readonly string[];
  readonly claims: JsonObject;
  readonly expireTime: Date;
}

type Recognize = (credential: string, context: VerifyContext) => Promise<Recognized | Invalid> | Recognized | Invalid;

const RECOGNIZERS: Readonly<Record<CredentialType, Recognize>> = {
  ISSUED_API_KEY: recognizeSecret,
  IMPORTED_API_KEY: recognizeRawKey,
  JWT: recognizeJwt,
  MACAROON: recognizeMacaroon,
};

/** What a credential is, by itself: no key is read. */
export async function recognize(credential: string, context: VerifyContext): Promise<Recognized | Invalid> {
  return RECOGNIZERS[classify(credential, context.shapes).type](credential, context);
}

function recognizeSecret(credential: string, { rings }: VerifyContext): Recognized | Invalid {
  const parsed = parseSecret(credential, rings.tag);
  if (!parsed.ok) return invalid(parsed.reason, parsed.message);
  return {
    credentialType: "ISSUED_API_KEY",
    lookup: { keyId: parsed.keyId, digests: [] },
    kind: "issued",
    belongsTo: (secret) => digestEquals(credential, secret.digest, rings.digest),
    token: null,
  };
}

function recognizeRawKey(credential: string, { rings }: VerifyContext): Recognized {
  return {
    credentialType: "IMPORTED_API_KEY",
    lookup: { keyId: null, digests: digestAll(credential, rings.digest).map(({ digest }) => digest) },
    kind: "imported",
    belongsTo: (secret) => digestEquals(credential, secret.digest, rings.digest),
    token: null,
  };
}

/** Keys that this node does not hold yet are fetched by their `kid`, once; the signature is judged when all are at hand. */
async function recognizeJwt(credential: string, context: VerifyContext): Promise<Recognized | Invalid> {
  let key: KeyObject | undefined;
  let wanted: string | undefined;
  const judge = () => {
    const keys = (kid: string) => {
      wanted = kid;
      return key;
    };
    return verifyJwt(credential, { keys, issuer: context.issuer, now: context.clock.now() });
  };
  let verdict = judge();
  if (!verdict.ok && verdict.unknownKid && wanted !== undefined) {
    key = await context.publicKey(wanted);
    verdict = judge();
  }
  return verdict.ok ? recognizeToken("JWT", verdict.token) : invalid(verdict.reason, verdict.message);
}

function recognizeMacaroon(credential: string, { rings, issuer, clock }: VerifyContext): Recognized | Invalid {
  const verdict = verifyMacaroon(credential, { keys: rings.macaroonRoot, issuer, now: clock.now() });
  return verdict.ok ? recognizeToken("MACAROON", verdict.token) : invalid(verdict.reason, verdict.message);
}

interface TokenContent {
  readonly tokenId: string;
  readonly keyId: string;
  readonly secretVersion: number;
  readonly expireTime: number;
  readonly scopes: readonly string[];
  readonly claims: JsonObject;
}

function recognizeToken(credentialType: CredentialType, content: TokenContent): Recognized {
  const { tokenId, keyId, secretVersion, scopes, claims, expireTime } = content;
  return {
    credentialType,
    lookup: { keyId, digests: [] },
    kind: null,
    belongsTo: (secret) => secret.version === secretVersion,
    token: { tokenId, scopes, claims, expireTime: new Date(expireTime) },
  };
}
