import { parse as uuidBytes, stringify as uuidText } from "uuid";
import { invalidArgument } from "../domain/errors.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { decodeBase64url, encodeBase64url, equalBytes } from "../lib/bytes.ts";

/**
 * The list of a page token. A token encodes version (1 byte) ‖ the last key id of the page (16 bytes) ‖ in version 2, the time of the first
 * page (6 bytes, milliseconds) ‖ tag (16 bytes) in base64url. The tag binds it to its list: with another RPC or filter it is rejected
 * (AIP-158).
 */
export interface PageList {
  /** The name of the RPC, which implies the kind of key. */
  readonly list: string;
  /** The filter as sent; empty if there is none. */
  readonly filter: string;
}

export interface PageStart {
  /** A UUID, in lower case. */
  readonly lastKeyId: string;
  /**
   * The `now()` of the filter on all pages, in milliseconds; null if the filter has none. Then the token is of version 1, which servers of
   * release 0.2 and earlier accept.
   */
  readonly now: number | null;
}

const KEY_ID_SIZE = 16;
const TIME_SIZE = 6;
const TAG_SIZE = 16;
const KEY_ID_END = 1 + KEY_ID_SIZE;

/** The length of the body by version. */
const BODY_SIZES = new Map([
  [1, KEY_ID_END],
  [2, KEY_ID_END + TIME_SIZE],
]);
const MAX_TEXT_LENGTH = ((KEY_ID_END + TIME_SIZE + TAG_SIZE) * 4) / 3;

/** Returns the token of the page after `lastKeyId`: 44 characters, with `now` 52. `ring` is that of "page-token". */
export function sealPageToken({ list, filter, lastKeyId, now }: PageList & PageStart, ring: KeyRing): string {
  const body = Buffer.concat([Buffer.of(now === null ? 1 : 2), uuidBytes(lastKeyId), timeBytes(now)]);
  return encodeBase64url(Buffer.concat([body, pageTag(ring.current, body, { list, filter })]));
}

/** Returns what a token contains. Throws `INVALID_ARGUMENT` on `page_token` unless it was sealed for this list. */
export function openPageToken(text: string, list: PageList, ring: KeyRing): PageStart {
  const bytes = text.length <= MAX_TEXT_LENGTH ? decodeBase64url(text) : undefined;
  const bodySize = BODY_SIZES.get(bytes?.[0] ?? 0);
  if (!bytes || bytes.length - TAG_SIZE !== bodySize || !isSealed(bytes, bodySize, list, ring)) {
    const description = "must be the next_page_token of a page of the same list and filter";
    throw invalidArgument("page_token", description, "VALUE_NOT_ALLOWED");
  }
  const now = bodySize === KEY_ID_END ? null : Buffer.from(bytes).readUIntBE(KEY_ID_END, TIME_SIZE);
  return { lastKeyId: uuidText(bytes.subarray(1, KEY_ID_END)), now };
}

function timeBytes(now: number | null): Buffer {
  const bytes = Buffer.alloc(now === null ? 0 : TIME_SIZE);
  if (now !== null) bytes.writeUIntBE(now, 0, TIME_SIZE);
  return bytes;
}

function isSealed(bytes: Uint8Array, bodySize: number, list: PageList, ring: KeyRing): boolean {
  const body = bytes.subarray(0, bodySize);
  const tag = bytes.subarray(bodySize);
  return ring.all.some((key) => equalBytes(tag, pageTag(key, body, list)));
}

/** JSON separates list and filter unambiguously; the version determines the length of the body before them. */
function pageTag(key: ServerKey, body: Uint8Array, { list, filter }: PageList): Uint8Array {
  return hmacSha256(key, body, JSON.stringify([list, filter])).subarray(0, TAG_SIZE);
}
