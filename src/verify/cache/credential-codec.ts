import type { CredentialType } from "../../domain/verdict.ts";
import type { JsonObject } from "../../lib/json.ts";
import {
  type Identified,
  identifiedByHash,
  identifiedRawKey,
  identifiedSecret,
  identifiedToken,
} from "../identified.ts";
import { decodeDigests, encodeDigests, encodeJson, KEY_ID_SIZE, keyIdText, writeKeyId } from "./codec.ts";

/**
 * The cached form of a credential: a byte for its type; the key id, except for a raw key; the digests, or the content of a token as JSON in
 * UTF-8. Times are milliseconds since the epoch.
 */
type Token = [
  tokenId: string,
  secretVersion: number,
  scopes: readonly string[],
  claims: JsonObject,
  expireTime: number,
  audience?: readonly string[],
];

const TYPES: readonly CredentialType[] = ["ISSUED_API_KEY", "IMPORTED_API_KEY", "JWT", "MACAROON"];
/** Instead of the place of the type: a raw key that is stored by a hash, whose digest is the last. */
const BY_HASH = TYPES.length;
const TYPE_SIZE = 1;

/** Encodes a credential and returns the length; NaN if it cannot be encoded, as with a key id that is not a UUID, or does not fit. */
export function encodeIdentified(identified: Identified, into: Buffer): number {
  const { credentialType, lookup, digests, token, hashDigest } = identified;
  into[0] = hashDigest === undefined ? TYPES.indexOf(credentialType) : BY_HASH;
  const { keyId } = lookup;
  const end = keyId === null ? TYPE_SIZE : TYPE_SIZE + writeKeyId(keyId, into, TYPE_SIZE);
  if (keyId !== null && keyIdText(into, TYPE_SIZE) !== keyId) return Number.NaN;
  if (token === null) return encodeDigests(digests, into, end);
  const { tokenId, secretVersion, scopes, claims, expireTime, audience } = token;
  const content: Token = [tokenId, secretVersion, scopes, claims, expireTime];
  if (audience !== undefined) content.push(audience);
  return encodeJson(content, into, end);
}

export function decodeIdentified(bytes: Buffer): Identified {
  const type = TYPES[bytes[0] ?? 0];
  if (type === undefined || type === "IMPORTED_API_KEY") {
    const digests = decodeDigests(bytes, TYPE_SIZE, bytes.length);
    const hashDigest = type === undefined ? digests.pop() : undefined;
    return hashDigest === undefined ? identifiedRawKey(digests) : identifiedByHash(digests, hashDigest);
  }
  const keyId = keyIdText(bytes, TYPE_SIZE);
  const rest = TYPE_SIZE + KEY_ID_SIZE;
  if (type === "ISSUED_API_KEY") return identifiedSecret(keyId, decodeDigests(bytes, rest, bytes.length));
  const content: Token = JSON.parse(bytes.toString("utf8", rest));
  const [tokenId, secretVersion, scopes, claims, expireTime, audience] = content;
  return identifiedToken(type, keyId, { tokenId, secretVersion, scopes, claims, expireTime, audience });
}
