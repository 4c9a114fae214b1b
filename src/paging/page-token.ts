import { parse as uuidBytes, stringify as uuidText } from "uuid";
import { invalidArgument } from "../domain/errors.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { decodeBase64url, encodeBase64url, equalBytes } from "../lib/bytes.ts";

/** The list of a page token. The tag of the token binds it to its list: with another RPC, filter or order it is rejected (AIP-158). */
export interface PageList {
  /** Differs from that of all other lists. */
  readonly list: string;
  /** The filter as sent; empty if there is none. */
  readonly filter: string;
  /** The order as sent; empty if there is none. */
  readonly orderBy: string;
}

/** `P` is the position of an item in the list, as JSON. */
export interface PageStart<P> {
  /** That of the last item of the previous page. */
  readonly after: P;
  /** The `now()` of the filter on all pages, in milliseconds; null if the filter has none. */
  readonly now: number | null;
}

/** The first byte of a token. */
const VERSION = {
  /** Followed by the bytes of the key id: all that a list of keys needs without `now()` and `order_by`. Servers of release 0.2 and earlier accept it. */
  KEY_ID: 1,
  /** Followed by the JSON of a `PageStart`. */
  JSON: 2,
} as const;

const KEY_ID_SIZE = 16;
const TAG_SIZE = 16;

/** Room for the longest name. */
const MAX_TEXT_LENGTH = 4096;

/** Returns the token of the page that begins at `start`, in base64url: version, content and tag. `ring` is that of "page-token". */
export function sealPageToken(list: PageList, { after, now }: PageStart<object>, ring: KeyRing): string {
  const body =
    now === null && isKeyId(after)
      ? Buffer.concat([Buffer.of(VERSION.KEY_ID), uuidBytes(after.keyId)])
      : Buffer.concat([Buffer.of(VERSION.JSON), Buffer.from(JSON.stringify({ after, now }))]);
  return encodeBase64url(Buffer.concat([body, pageTag(ring.current, body, list)]));
}

/** Returns what a token contains. Throws `INVALID_ARGUMENT` on `page_token` unless it was sealed for this list. */
export function openPageToken<P>(text: string, list: PageList, ring: KeyRing): PageStart<P> {
  const bytes = (text.length <= MAX_TEXT_LENGTH && decodeBase64url(text)) || new Uint8Array();
  const [body, tag] = [bytes.subarray(0, -TAG_SIZE), bytes.subarray(-TAG_SIZE)];
  const isSealed = ring.all.some((key) => equalBytes(tag, pageTag(key, body, list)));
  const start = isSealed ? readStart(body) : undefined;
  // The tag proves that the position is of this list.
  if (start !== undefined) return start as PageStart<P>;
  const description = "must be a next_page_token returned by the same method for the same filter and order_by";
  throw invalidArgument("page_token", description, "VALUE_NOT_ALLOWED");
}

/** Returns whether a position is one of a list of keys, and has nothing but the key id. */
function isKeyId(after: object): after is { readonly keyId: string } {
  return "keyId" in after && "value" in after && after.value === null;
}

/** Reads a body that this service has sealed; undefined if it is of another version. */
function readStart(body: Uint8Array): PageStart<unknown> | undefined {
  const content = body.subarray(1);
  if (body[0] === VERSION.JSON) return JSON.parse(Buffer.from(content).toString());
  if (body[0] !== VERSION.KEY_ID || content.length !== KEY_ID_SIZE) return undefined;
  return { after: { keyId: uuidText(content), value: null }, now: null };
}

/** JSON separates the parts of the list unambiguously. Servers of release 0.2 and earlier know no order. */
function pageTag(key: ServerKey, body: Uint8Array, { list, filter, orderBy }: PageList): Uint8Array {
  const parts = orderBy === "" ? [list, filter] : [list, filter, orderBy];
  return hmacSha256(key, body, JSON.stringify(parts)).subarray(0, TAG_SIZE);
}
