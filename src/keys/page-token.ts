import { parse as uuidBytes, stringify as uuidText } from "uuid";
import { invalidArgument } from "../domain/errors.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { decodeBase64url, encodeBase64url, equalBytes } from "../lib/bytes.ts";
import type { ListPosition } from "./list-order.ts";

/** The list of a page token. The tag of the token binds it to its list: with another RPC, filter or order it is rejected (AIP-158). */
export interface PageList {
  /** The name of the RPC, which implies the kind of key. */
  readonly list: string;
  /** The filter as sent; empty if there is none. */
  readonly filter: string;
  /** The order as sent; empty if there is none. */
  readonly orderBy: string;
}

export interface PageStart {
  /** The last key of the previous page. */
  readonly after: ListPosition;
  /** The `now()` of the filter on all pages, in milliseconds; null if the filter has none. */
  readonly now: number | null;
}

/** The first byte of a token. */
const VERSION = {
  /** Followed by the bytes of the key id: all that a list needs without `now()` and `order_by`. Servers of release 0.2 and earlier accept it. */
  KEY_ID: 1,
  /** Followed by the JSON of a `PageStart`. */
  JSON: 2,
} as const;

const KEY_ID_SIZE = 16;
const TAG_SIZE = 16;

/** Room for the longest name. */
const MAX_TEXT_LENGTH = 4096;

/** Returns the token of the page that begins at `start`, in base64url: version, content and tag. `ring` is that of "page-token". */
export function sealPageToken(list: PageList, start: PageStart, ring: KeyRing): string {
  const isKeyIdEnough = start.now === null && start.after.value === null;
  const body = isKeyIdEnough
    ? Buffer.concat([Buffer.of(VERSION.KEY_ID), uuidBytes(start.after.keyId)])
    : Buffer.concat([Buffer.of(VERSION.JSON), Buffer.from(JSON.stringify(start))]);
  return encodeBase64url(Buffer.concat([body, pageTag(ring.current, body, list)]));
}

/** Returns what a token contains. Throws `INVALID_ARGUMENT` on `page_token` unless it was sealed for this list. */
export function openPageToken(text: string, list: PageList, ring: KeyRing): PageStart {
  const bytes = (text.length <= MAX_TEXT_LENGTH && decodeBase64url(text)) || new Uint8Array();
  const [body, tag] = [bytes.subarray(0, -TAG_SIZE), bytes.subarray(-TAG_SIZE)];
  const isSealed = ring.all.some((key) => equalBytes(tag, pageTag(key, body, list)));
  const start = isSealed ? readStart(body) : undefined;
  if (start !== undefined) return start;
  const description = "must be a next_page_token returned by the same method for the same filter and order_by";
  throw invalidArgument("page_token", description, "VALUE_NOT_ALLOWED");
}

/** Reads a body that this service has sealed; undefined if it is of another version. */
function readStart(body: Uint8Array): PageStart | undefined {
  const content = body.subarray(1);
  if (body[0] === VERSION.JSON) return JSON.parse(Buffer.from(content).toString()) as PageStart;
  if (body[0] !== VERSION.KEY_ID || content.length !== KEY_ID_SIZE) return undefined;
  return { after: { keyId: uuidText(content), value: null }, now: null };
}

/** JSON separates the parts of the list unambiguously. Servers of release 0.2 and earlier know no order. */
function pageTag(key: ServerKey, body: Uint8Array, { list, filter, orderBy }: PageList): Uint8Array {
  const parts = orderBy === "" ? [list, filter] : [list, filter, orderBy];
  return hmacSha256(key, body, JSON.stringify(parts)).subarray(0, TAG_SIZE);
}
