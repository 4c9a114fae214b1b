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
  const [head, ...rest] = text.split(".");
  const header = head === undefined ? undefined : decodeHeader(head);
  const [payload, signature, ...excess] = rest.map(decodeBase64url);
  if (!header || !payload || !signature || excess.length > 0) return undefined;
  const signedData = Buffer.from(text.slice(0, text.lastIndexOf(".")), "latin1");
  return { header, payload, signature, signedData };
}

/**
 * Whether a credential is meant as a JWT: three parts of the base64url alphabet, the first a JSON object with a string
 * `alg`. Weaker than `decodeCompact` on purpose: what was a JWT until it was damaged is to be refused as one.
 */
export function looksLikeJwt(text: string): boolean {
  if (!BASE64URL_PARTS.test(text)) return false;
  const head = text.slice(0, text.indexOf("."));
  const header = decodeHeader(head) ?? decodeJsonObject(Buffer.from(head, "base64url"));
  return typeof header?.alg === "string";
}

/** The header that was read last, and its text: tokens that one key signed have the same, so it is read once and not twice a token. */
let lastHeader: { readonly text: string; readonly header: JsonObject } | undefined;

/** Undefined unless the text is a JSON object in canonical base64url. */
function decodeHeader(text: string): JsonObject | undefined {
  if (text === lastHeader?.text) return lastHeader.header;
  const bytes = decodeBase64url(text);
  const header = bytes === undefined ? undefined : decodeJsonObject(bytes);
  // The same text written anew, for what is given is a slice, which would keep the whole token in memory.
  if (bytes && header) lastHeader = { text: encodeBase64url(bytes), header };
  return header;
}
