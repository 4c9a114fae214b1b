import { MAX_CREDENTIAL_BYTES } from "../../domain/limits.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/bytes.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../lib/json.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";

/** A decoded JWS Compact Serialization (RFC 7515 §3.1, §7.1), not yet verified. */
export interface CompactJws {
  readonly header: JsonObject;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  /** The signing input: the first two parts as received. */
  readonly signedData: Uint8Array;
}

const BASE64URL_PARTS = /^[\w-]+\.[\w-]*\.[\w-]*$/;

/** Encodes a compact JWS; `sign` returns the signature of the signing input. */
export function encodeCompact(header: JsonObject, payload: JsonObject, sign: (data: Uint8Array) => Uint8Array): string {
  const signingInput = [header, payload].map((part) => encodeBase64url(Buffer.from(JSON.stringify(part)))).join(".");
  return `${signingInput}.${encodeBase64url(sign(Buffer.from(signingInput)))}`;
}

/** Decodes a compact JWS. Returns undefined unless it is three parts of canonical unpadded base64url, the first a JSON object. */
export function decodeCompact(text: string): CompactJws | undefined {
  const [head, ...rest] = text.split(".");
  const header = head === undefined ? undefined : decodeHeader(head);
  const [payload, signature, ...excess] = rest.map(decodeBase64url);
  if (!header || !payload || !signature || excess.length > 0) return undefined;
  const signedData = Buffer.from(text.slice(0, text.lastIndexOf(".")), "latin1");
  return { header, payload, signature, signedData };
}

/**
 * Returns whether a credential has the shape of a JWT: three parts of the base64url alphabet, the first a JSON object with a string `alg`,
 * no longer than a credential may be, since a text may have 4 MiB. Deliberately weaker than `decodeCompact`: a damaged JWT must be rejected
 * as a JWT.
 */
export function looksLikeJwt(text: string): boolean {
  if (text.length > MAX_CREDENTIAL_BYTES || !BASE64URL_PARTS.test(text)) return false;
  const head = text.slice(0, text.indexOf("."));
  const header = decodeHeader(head) ?? decodeJsonObject(Buffer.from(head, "base64url"));
  return typeof header?.alg === "string";
}

/** The last decoded header by its text: tokens of one signing key have the same header. */
let lastHeader: { readonly text: string; readonly header: JsonObject } | undefined;

/** Returns undefined unless the text is a JSON object in canonical base64url. */
function decodeHeader(text: string): JsonObject | undefined {
  if (text === lastHeader?.text) return lastHeader.header;
  const bytes = decodeBase64url(text);
  const header = bytes === undefined ? undefined : decodeJsonObject(bytes);
  // Encoded again instead of keeping `text`: a slice would retain the whole token.
  if (bytes && header) lastHeader = { text: encodeBase64url(bytes), header };
  return header;
}

/** Decodes a JSON object in UTF-8; undefined if it is malformed. The last of duplicate members wins. */
export function decodeJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const text = decodeUtf8(bytes);
  const value = text === undefined ? undefined : parseJson(text);
  return isJsonObject(value) ? value : undefined;
}
