import { isJsonObject, type JsonValue, parseJson } from "../../lib/json.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import { isCount } from "../token.ts";

/** The identifier of a Keyhold macaroon, which the signature covers. */
export interface MacaroonIdentifier {
  /** Id of the server key used as the root key. */
  readonly rootKeyId: string;
  readonly tokenId: string;
  /** The API key that it is derived from: a UUID in lower case. */
  readonly keyId: string;
  /** Version of that key's secret at derivation. */
  readonly secretVersion: number;
  /** Milliseconds since the epoch, whole seconds on the wire. */
  readonly issueTime: number;
  /** Id of the parent token, if any. */
  readonly parentId?: string | undefined;
  /** Number of leading caveats minted by the server. The holder appended the others. */
  readonly mintedCaveats: number;
}

const VERSION = 1;
const ID = /^[\x21-\x7e]{1,128}$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Formats the identifier as compact JSON in UTF-8, in the member order that `parseIdentifier` requires. */
export function formatIdentifier(identifier: MacaroonIdentifier): Uint8Array {
  return Buffer.from(print(identifier), "utf8");
}

/** The exact inverse of `formatIdentifier`. Returns undefined for another version or service, or malformed data. */
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

/** Ignores other members and the version: `parseIdentifier` formats the result again and compares. */
function fromJson(json: JsonValue | undefined): MacaroonIdentifier | undefined {
  if (!isJsonObject(json)) return undefined;
  const { kid, jti, key_id, secret_version, iat, parent_id, caveats } = json;
  if (!isId(kid) || !isId(jti) || !isId(key_id, UUID)) return undefined;
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

function isId(value: unknown, form = ID): value is string {
  return typeof value === "string" && form.test(value);
}
