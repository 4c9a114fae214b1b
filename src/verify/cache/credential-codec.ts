import type { SecretDigest } from "../../domain/key.ts";
import type { CredentialType } from "../../domain/verdict.ts";
import type { JsonObject } from "../../lib/json.ts";
import {
  type Identified,
  identifiedByHash,
  identifiedRawKey,
  identifiedSecret,
  identifiedToken,
  type VerifiedToken,
} from "../identified.ts";
import {
  decodeDigest,
  encodeDigests,
  encodeJson,
  KEY_ID_SIZE,
  keyIdText,
  SECRET_DIGEST_SIZE,
  writeKeyId,
} from "./codec.ts";

/**
 * The cached form of a credential: a byte for its type; the key id, except for a raw key; the digests, or the content of a token as JSON in
 * UTF-8. Times are milliseconds since the epoch.
 */
type Token = [
  tokenId: string,
  secretVersion: number,
  scopes: string[],
  claims: JsonObject,
  expireTime: number,
  audience?: string[],
];

const TYPES: readonly CredentialType[] = ["ISSUED_API_KEY", "IMPORTED_API_KEY", "JWT", "MACAROON"];
/** Instead of the place of the type: a raw key that is stored by a hash, whose digest is the last. */
const BY_HASH = TYPES.length;
const TYPE_SIZE = 1;

/** Encodes a credential and returns the length; NaN if it cannot be encoded, as with a key id that is not a UUID, or does not fit. */
export function encodeIdentified(identified: Identified, into: Buffer): number {
  const { credentialType, lookup, digests, token, hashDigest } = identified;
  into[0] = hashDigest === undefined ? TYPES.indexOf(credentialType) : BY_HASH;
  const end = encodeDigests(digests, into, encodeKeyId(lookup.keyId, into));
  return token === null ? end : encodeJson(tokenTuple(token), into, end);
}

function encodeKeyId(keyId: string | null, into: Buffer): number {
  if (keyId === null) return TYPE_SIZE;
  writeKeyId(keyId, into, TYPE_SIZE);
  return keyIdText(into, TYPE_SIZE) === keyId ? TYPE_SIZE + KEY_ID_SIZE : Number.NaN;
}

export function decodeIdentified(bytes: Buffer): Identified {
  if (bytes[0] === BY_HASH) return decodeByHash(bytes);
  const type = TYPES[bytes[0] ?? 0] ?? "ISSUED_API_KEY";
  if (type === "IMPORTED_API_KEY") return identifiedRawKey(decodeDigests(bytes, TYPE_SIZE));
  const keyId = keyIdText(bytes, TYPE_SIZE);
  const rest = TYPE_SIZE + KEY_ID_SIZE;
  if (type === "ISSUED_API_KEY") return identifiedSecret(keyId, decodeDigests(bytes, rest));
  return identifiedToken(type, keyId, decodeToken(bytes.toString("utf8", rest)));
}

function decodeByHash(bytes: Buffer): Identified {
  const last = bytes.length - SECRET_DIGEST_SIZE;
  return identifiedByHash(decodeDigests(bytes.subarray(0, last), TYPE_SIZE), decodeDigest(bytes, last));
}

function decodeDigests(bytes: Buffer, start: number): SecretDigest[] {
  const digests: SecretDigest[] = [];
  for (let at = start; at < bytes.length; at += SECRET_DIGEST_SIZE) digests.push(decodeDigest(bytes, at));
  return digests;
}

function tokenTuple({ tokenId, secretVersion, scopes, claims, expireTime, audience }: VerifiedToken): Token {
  const restriction: [string[]?] = audience === undefined ? [] : [[...audience]];
  return [tokenId, secretVersion, [...scopes], claims, expireTime, ...restriction];
}

function decodeToken(text: string): VerifiedToken {
  const [tokenId, secretVersion, scopes, claims, expireTime, audience]: Token = JSON.parse(text);
  return { tokenId, secretVersion, scopes, claims, expireTime, audience };
}
