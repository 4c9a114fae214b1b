import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import type { JsonObject } from "../../lib/json.ts";
import { decodeJsonObject, encodeJson } from "./json.ts";

/** The JWS Compact Serialization (RFC 7515 §3.1, §7.1), taken apart and not yet judged. */
export interface CompactJws {
  readonly header: JsonObject;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
  /** What the signature is over: the first two parts as they stand. */
  readonly signedData: Uint8Array;
}

const BASE64URL_PARTS = /^[\w-]+\.[\w-]*\.[\w-]*$/;

/** A compact JWS of a header and a payload; `sign` makes the signature of the signing input. */
export function encodeCompact(header: JsonObject, payload: JsonObject, sign: (data: Uint8Array) => Uint8Array): string {
  const signingInput = `${encodeBase64url(encodeJson(header))}.${encodeBase64url(encodeJson(payload))}`;
  return `${signingInput}.${encodeBase64url(sign(Buffer.from(signingInput)))}`;
}

/** Undefined unless the text is three parts of canonical unpadded base64url, the first a JSON object. */
export function decodeCompact(text: string): CompactJws | undefined {
  const [header, payload, signature, ...rest] = text.split(".").map(decodeBase64url);
  if (!header || !payload || !signature || rest.length > 0) return undefined;
  const headerObject = decodeJsonObject(header);
  if (headerObject === undefined) return undefined;
  const signedData = Buffer.from(text.slice(0, text.lastIndexOf(".")));
  return { header: headerObject, payload, signature, signedData };
}

/**
 * Whether a credential is meant as a JWT: three parts of the base64url alphabet, the first a JSON object with a string
 * `alg`. Weaker than `decodeCompact` on purpose: what was a JWT until it was damaged is to be refused as one.
 */
export function looksLikeJwt(text: string): boolean {
  if (!BASE64URL_PARTS.test(text)) return false;
  const header = decodeJsonObject(Buffer.from(text.slice(0, text.indexOf(".")), "base64url"));
  return typeof header?.alg === "string";
}
