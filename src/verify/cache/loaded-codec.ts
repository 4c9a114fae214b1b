import type { KeyKind, SecretDigest } from "../../domain/key.ts";
import { type ActorLimits, isQuota, isRateLimit, type Limit } from "../../domain/rate-limit.ts";
import type { CredentialType } from "../../domain/verdict.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Loaded } from "../identified.ts";

export const CREDENTIAL_TYPES: readonly CredentialType[] = ["ISSUED_API_KEY", "IMPORTED_API_KEY", "JWT", "MACAROON"];

type Token = [
  tokenId: string,
  expireTime: number,
  scopes: readonly string[],
  keyScopes: readonly string[],
  claims: JsonObject,
];

type Digest = [keyId: string, hex: string];

/** Times are milliseconds since the epoch. Trailing nulls, which most keys have, are left out. */
type Content = [
  actorId: string,
  metadata: Readonly<Record<string, string>>,
  expireTime: number | null,
  token: Token | null,
  secretExpireTime: number | null,
  revokeTime: number | null,
  disableTime: number | null,
  restrictedToActorIds: readonly string[] | null,
  adoption: readonly Digest[] | null,
];

/** What is encoded outside of the content. */
interface Head {
  readonly keyId: string;
  readonly kind: KeyKind;
  readonly credentialType: CredentialType;
  /** The effective scopes. */
  readonly scopes: readonly string[];
  readonly allowedCidrs: readonly string[] | null;
  readonly audience: readonly string[] | undefined;
  readonly limits: readonly Limit[];
  readonly actorLimits: ActorLimits | undefined;
  /** Null: the key does not have the secret any more. */
  readonly secretVersion: number | null;
}

/** Returns a credential with its key as JSON, without the digest of its secret: whoever finds the entry has the secret. */
export function encodeLoaded({ identified: { token }, stored: { key }, secret, adoption }: Loaded): Partial<Content> {
  const content: Content = [
    key.actorId,
    key.metadata,
    millis(key.expireTime),
    token && [token.tokenId, token.expireTime, token.scopes, key.scopes, token.claims],
    millis(secret?.expireTime),
    millis(key.revokeTime),
    millis(key.disableTime),
    key.restrictedToActorIds,
    adoption && [adoption.hashDigest, adoption.digest, ...adoption.otherDigests].map(encodeDigest),
  ];
  return content.slice(0, content.findLastIndex((value) => value !== null) + 1) as Partial<Content>;
}

export function decodeLoaded(json: string, head: Head): Loaded {
  const content: Content = JSON.parse(json);
  const [actorId, metadata, expireTime, token = null, secretExpireTime, revokeTime, disableTime, ...rest] = content;
  const [restrictedToActorIds = null, digests = null] = rest;
  const { keyId, kind, credentialType, scopes, allowedCidrs, audience, limits, actorLimits, secretVersion } = head;
  const secret = secretVersion === null ? undefined : { version: secretVersion, expireTime: dateOf(secretExpireTime) };
  return {
    identified: { credentialType, token: token && decodeToken(token, audience, secretVersion ?? 0) },
    stored: {
      key: {
        ...{ keyId, kind, actorId, scopes: token === null ? scopes : token[3], metadata },
        ...{ expireTime: dateOf(expireTime), revokeTime: dateOf(revokeTime), disableTime: dateOf(disableTime) },
        ...{
          allowedCidrs,
          restrictedToActorIds,
          rateLimits: nonEmpty(limits.filter(isRateLimit)),
          quotas: nonEmpty(limits.filter(isQuota)),
        },
      },
      ...{ secrets: [], actorLimits },
    },
    secret,
    adoption: digests && decodeAdoption(keyId, digests.map(decodeDigest)),
  };
}

function decodeToken(
  [tokenId, expireTime, scopes, , claims]: Token,
  audience: readonly string[] | undefined,
  secretVersion: number,
) {
  return { tokenId, secretVersion, scopes, claims, audience, expireTime };
}

function decodeAdoption(keyId: string, [hashDigest, digest, ...otherDigests]: readonly SecretDigest[]) {
  return hashDigest === undefined || digest === undefined ? null : { keyId, hashDigest, digest, otherDigests };
}

function encodeDigest({ keyId, digest }: SecretDigest): Digest {
  return [keyId, Buffer.from(digest).toString("hex")];
}

function decodeDigest([keyId, hex]: Digest): SecretDigest {
  return { keyId, digest: Buffer.from(hex, "hex") };
}

function nonEmpty<T>(list: readonly T[]): readonly T[] | null {
  return list.length === 0 ? null : list;
}

function millis(time: Date | null | undefined): number | null {
  return time?.getTime() ?? null;
}

function dateOf(time: number | null | undefined): Date | null {
  return time == null ? null : new Date(time);
}
