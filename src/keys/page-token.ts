import { parse as uuidBytes, stringify as uuidText } from "uuid";
import { invalidArgument } from "../domain/errors.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { decodeBase64url, encodeBase64url, equalBytes } from "../lib/bytes.ts";

/**
 * The list of a page token. A token encodes version (1 byte) ‖ the last key id of the page (16 bytes) ‖ tag (16 bytes) in base64url. The tag
 * binds it to its list: with another RPC or filter it is rejected (AIP-158).
 */
export interface PageList {
  /** The name of the RPC, which implies the kind of key. */
  readonly list: string;
  /** The filter as sent; empty if there is none. */
  readonly filter: string;
}

export interface PagePosition extends PageList {
  /** A UUID. */
  readonly lastKeyId: string;
}

const VERSION = 1;
const KEY_ID_SIZE = 16;
const TAG_SIZE = 16;
const BODY_SIZE = 1 + KEY_ID_SIZE;
const TEXT_LENGTH = ((BODY_SIZE + TAG_SIZE) * 4) / 3;

/** Returns the token of the page after `lastKeyId`: 44 characters. `ring` is that of "page-token". */
export function sealPageToken({ list, filter, lastKeyId }: PagePosition, ring: KeyRing): string {
  const body = Buffer.concat([Buffer.of(VERSION), uuidBytes(lastKeyId)]);
  return encodeBase64url(Buffer.concat([body, pageTag(ring.current, body, { list, filter })]));
}

/** Returns the key id in a token, in lower case. Throws `INVALID_ARGUMENT` on `page_token` unless it was sealed for this list. */
export function openPageToken(text: string, list: PageList, ring: KeyRing): string {
  const bytes = text.length === TEXT_LENGTH ? decodeBase64url(text) : undefined;
  if (!bytes || bytes[0] !== VERSION || !isSealed(bytes, list, ring)) {
    const description = "must be the next_page_token of a page of the same list and filter";
    throw invalidArgument("page_token", description, "VALUE_NOT_ALLOWED");
  }
  return uuidText(bytes.subarray(1, BODY_SIZE));
}

function isSealed(bytes: Uint8Array, list: PageList, ring: KeyRing): boolean {
  const body = bytes.subarray(0, BODY_SIZE);
  const tag = bytes.subarray(BODY_SIZE);
  return ring.all.some((key) => equalBytes(tag, pageTag(key, body, list)));
}

/** JSON separates list and filter unambiguously; the body before them has a fixed length. */
function pageTag(key: ServerKey, body: Uint8Array, { list, filter }: PageList): Uint8Array {
  return hmacSha256(key, body, JSON.stringify([list, filter])).subarray(0, TAG_SIZE);
}
