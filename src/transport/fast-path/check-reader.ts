import type { CheckedRequest } from "../../api/envoy/check-request.ts";

/** No message up to this size has more fields than are accepted. Bytes. */
const MAX_USUAL_BYTES = 2 ** 15;

/**
 * Reads the binary form of a `CheckRequest` as Envoy writes it: the complete decoder takes several times as long as a verification. Returns
 * undefined for any other form, which is left to that decoder: unknown fields, other types than usual, a string that is not ASCII, a name
 * that occurs twice in a map. Wherever it returns a request, the complete decoder returns the same.
 */
export function readUsualCheck(bytes: Uint8Array): CheckedRequest | undefined {
  if (bytes.length > MAX_USUAL_BYTES) return undefined;
  const scan = new Scan(bytes);
  if (!scan.message(0, bytes.length, CHECK_REQUEST)) return undefined;
  const { isHttp, source, path, mapped, listed, extensions } = scan;
  if (hasNameTwice(mapped) || hasNameTwice(extensions)) return undefined;
  return { isHttp, source, path, fields: listed ?? mapped, extensions };
}

/** Names and values in turn. */
function hasNameTwice(pairs: readonly string[]): boolean {
  if (pairs.length <= 2) return false;
  const names = new Set<string | undefined>();
  for (let at = 0; at < pairs.length; at += 2) names.add(pairs[at]);
  return names.size * 2 < pairs.length;
}

/** Reads the content of a length-delimited field. Returns false for an unusual one. */
type Read = (scan: Scan, start: number, end: number) => boolean;

/**
 * What is done with the fields of a message, by number; others are unusual. A message that occurs twice is read into the same place, as
 * Protobuf merges it, and the last of several values counts.
 */
type Shape = readonly (Read | "number" | undefined)[];

const within =
  (shape: Shape): Read =>
  (scan, start, end) =>
    scan.message(start, end, shape);

const text: Read = (scan, start, end) => scan.string(start, end) !== undefined;
const bytes: Read = () => true;
const empty: Read = (_, start, end) => start === end;

const SOCKET_ADDRESS: Shape = [
  ...[undefined, "number"],
  (scan, start, end) => scan.keep("source", start, end),
  ...["number", text, text, "number"],
] as const;
const TIMESTAMP: Shape = [undefined, "number", "number"];
const peer = (address: Shape): Read =>
  within([undefined, within([undefined, within(address)]), text, undefined, text, text]);

const HTTP_REQUEST: Shape = [
  ...[undefined, text, text],
  (scan, start, end) => scan.pair(start, end, scan.mapped, true),
  (scan, start, end) => scan.keep("path", start, end),
  ...[text, text, text, text, "number", text, text, bytes],
  (scan, start, end) => {
    scan.listed ??= [];
    return scan.message(start, end, HEADER_MAP);
  },
] as const;
const HEADER_MAP: Shape = [undefined, (scan, start, end) => scan.pair(start, end, scan.listed ?? [], true)];
const REQUEST: Shape = [
  ...[undefined, within(TIMESTAMP)],
  (scan, start, end) => {
    scan.isHttp = true;
    return scan.message(start, end, HTTP_REQUEST);
  },
] as const;
const ATTRIBUTES: Shape = [
  ...[undefined, peer(SOCKET_ADDRESS)],
  // The destination, which does not matter.
  peer([undefined, "number", text, "number", text, text, "number"]),
  ...[undefined, within(REQUEST), undefined, undefined, undefined, undefined, undefined],
  (scan, start, end) => scan.pair(start, end, scan.extensions, false),
  ...[empty, within([undefined, text]), empty],
] as const;
const CHECK_REQUEST: Shape = [undefined, within(ATTRIBUTES)];

/** The wire types that are usual (https://protobuf.dev/programming-guides/encoding/). */
const VARINT = 0;
const LENGTH_DELIMITED = 2;
/** Bytes below it end a varint. */
const CONTINUATION = 0x80;
const MAX_VARINT_BYTES = 10;

const LOWER_CASE = /^[a-z\d:_-]*$/;
const NOT_ASCII = /[^\0-\x7f]/;

class Scan {
  isHttp = false;
  source = "";
  path = "";
  /** The headers of the map, and of the list, names in lower case and values in turn. */
  readonly mapped: string[] = [];
  listed: string[] | undefined;
  readonly extensions: string[] = [];
  readonly #bytes: Uint8Array;
  /** A character a byte: its parts share its memory. */
  readonly #text: string;
  /** After a length or number has been read: where it ends. */
  #at = 0;

  constructor(given: Uint8Array) {
    this.#bytes = given;
    this.#text = Buffer.from(given.buffer, given.byteOffset, given.length).toString("latin1");
  }

  /** Reads a message. Returns false for an unusual one. */
  message(start: number, end: number, shape: Shape): boolean {
    for (let at = start; at < end; at = this.#at) {
      const tag = this.#bytes[at] ?? CONTINUATION;
      const read = tag < CONTINUATION ? shape[tag >> 3] : undefined;
      if (read === "number") {
        if ((tag & 7) !== VARINT || !this.#skipNumber(at + 1, end)) return false;
      } else {
        if (read === undefined || (tag & 7) !== LENGTH_DELIMITED) return false;
        const from = this.#contentAt(at + 1, end);
        if (from < 0) return false;
        const to = this.#at;
        if (!read(this, from, to)) return false;
        this.#at = to;
      }
    }
    return true;
  }

  /** Reads a name and a value, which may also be in bytes, and adds them. */
  pair(start: number, end: number, pairs: string[], isHeader: boolean): boolean {
    let name: string | undefined = "";
    let value: string | undefined = "";
    let raw = "";
    for (let at = start; at < end; at = this.#at) {
      const from = this.#contentAt(at + 1, end);
      if (from < 0) return false;
      const tag = this.#bytes[at];
      if (tag === NAME_TAG) name = this.#name(from, this.#at, isHeader);
      else if (tag === VALUE_TAG) value = this.string(from, this.#at);
      else if (tag === RAW_VALUE_TAG && pairs === this.listed) raw = this.#text.slice(from, this.#at);
      else return false;
    }
    if (name === undefined || value === undefined) return false;
    pairs.push(name, raw === "" ? value : raw);
    return true;
  }

  /** That of a header in lower case, as Envoy writes it. */
  #name(start: number, end: number, isHeader: boolean): string | undefined {
    const name = this.#text.slice(start, end);
    if (LOWER_CASE.test(name)) return name;
    if (NOT_ASCII.test(name)) return undefined;
    return isHeader ? name.toLowerCase() : name;
  }

  keep(field: "source" | "path", start: number, end: number): boolean {
    const value = this.string(start, end);
    if (value === undefined) return false;
    this[field] = value;
    return true;
  }

  /** Returns undefined unless it is ASCII. */
  string(start: number, end: number): string | undefined {
    const value = this.#text.slice(start, end);
    return NOT_ASCII.test(value) ? undefined : value;
  }

  /** Reads a length of at most two bytes, which are enough. Returns where its content begins, or -1; `#at` is where that ends. */
  #contentAt(at: number, end: number): number {
    const low = this.#bytes[at] ?? 0;
    const high = low < CONTINUATION ? 0 : (this.#bytes[at + 1] ?? CONTINUATION);
    const from = low < CONTINUATION ? at + 1 : at + 2;
    this.#at = from + (low % CONTINUATION) + high * CONTINUATION;
    return high < CONTINUATION && from <= end && this.#at <= end ? from : -1;
  }

  #skipNumber(at: number, end: number): boolean {
    let last = at;
    while (last < end && (this.#bytes[last] ?? 0) >= CONTINUATION) last++;
    this.#at = last + 1;
    return last < end && last - at < MAX_VARINT_BYTES;
  }
}

/** Of the fields 1, 2 and 3 of a header or of an entry of a map. */
const NAME_TAG = 0x0a;
const VALUE_TAG = 0x12;
const RAW_VALUE_TAG = 0x1a;
