import { isJsonObject, type JsonValue, parseJson } from "../../lib/json.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";

/** What a macaroon of ours says of itself in its identifier, which the chain signs. */
export interface MacaroonIdentifier {
  /** Id of the server key that is the root key. */
  readonly rootKeyId: string;
  readonly tokenId: string;
  /** The API key it was derived from: a UUID in lower case. */
  readonly keyId: string;
  /** Version of that key's secret at derivation. */
  readonly secretVersion: number;
  /** Milliseconds since the epoch, whole seconds on the wire. */
  readonly issueTime: number;
  /** Id of the token it was derived from, if it was one. */
  readonly parentId?: string | undefined;
  /** How many caveats, from the first on, are the server's own. The others are the holder's. */
  readonly mintedCaveats: number;
}

const VERSION = 1;
const ID = /^[\x21-\x7e]{1,128}$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The identifier as compact JSON in UTF-8, members in the one order that `parseIdentifier` takes. */
export function formatIdentifier(identifier: MacaroonIdentifier): Uint8Array {
  return Buffer.from(print(identifier), "utf8");
}

/** The inverse of `formatIdentifier`, byte for byte. Undefined for another version, another service or a malformed one. */
export function parseIdentifier(bytes: Uint8Array): MacaroonIdentifier | undefined {
  const text = decodeUtf8(bytes);
  const identifier = text === undefined ? undefined : fromJson(parseJson(text));
  return identifier !== undefined && print(identifier) === text ? identifier : undefined;
}

function print(identifier: MacaroonIdentifier): string {
  return JSON.stringify({
    v: VERSION,
    kid: identifier.rootKeyId,
    jti: identifier.tokenId,
    key_id: identifier.keyId,
    secret_version: identifier.secretVersion,
    iat: Math.floor(identifier.issueTime / 1000),
    parent_id: identifier.parentId,
    caveats: identifier.mintedCaveats,
  });
}

/** Takes no notice of other members, nor of the version: `parseIdentifier` prints again and compares. */
function fromJson(json: JsonValue | undefined): MacaroonIdentifier | undefined {
  if (!isJsonObject(json)) return undefined;
  const { kid, jti, key_id, secret_version, iat, parent_id, caveats } = json;
  if (!isId(kid) || !isId(jti) || !isUuid(key_id)) return undefined;
  if (!isCount(secret_version) || !isCount(iat) || !isCount(caveats)) return undefined;
  if (parent_id !== undefined && !isId(parent_id)) return undefined;
  return {
    rootKeyId: kid,
    tokenId: jti,
    keyId: key_id,
    secretVersion: secret_version,
    issueTime: iat * 1000,
    parentId: parent_id,
    mintedCaveats: caveats,
  };
}

function isId(value: unknown): value is string {
  return typeof value === "string" && ID.test(value);
}

function isUuid(value: unknown): value is string {
  return typeof value === "string" && UUID.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
