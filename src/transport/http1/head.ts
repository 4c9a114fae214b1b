/** The head of a request (RFC 9112 §2.1), read from its bytes. */
export interface Head {
  readonly method: string;
  /** In origin form (RFC 9112 §3.2.1). */
  readonly target: string;
  /** By lower-case name. */
  readonly headers: Headers;
  /** Bytes of the body. */
  readonly contentLength: number;
  /** Bytes of the head itself, with the empty line that ends it. */
  readonly size: number;
}

type Headers = Readonly<Record<string, string>>;

const END = "\r\n\r\n";

/**
 * A method whose response has a body, a target in origin form, and fields of RFC 9110 §5.5 whose values are printable ASCII.
 */
const USUAL = /^(?:GET|POST|PUT|PATCH|DELETE) \/[!-~]* HTTP\/1\.1\r\n(?:[\w!#$%&'*+.^`|~-]+:[ -~]*\r\n)+\r\n$/;

/** These change what the bytes mean, or ask for more than one answer. */
const UNUSUAL = ["transfer-encoding", "upgrade", "expect"] as const;

/**
 * Reads the head that `bytes` begin with, if it is of the usual form; "partial" while its end is missing. "unusual" is all else
 * that RFC 9112 allows or forbids, and is for a complete parser to judge: here no byte can be taken for another than it is.
 * `maxSize` in bytes.
 */
export function readHead(bytes: Buffer, maxSize: number): Head | "partial" | "unusual" {
  if (!isUpperCase(bytes[0])) return "unusual";
  const end = bytes.indexOf(END, 0, "latin1");
  if (end === -1) return bytes.length < maxSize ? "partial" : "unusual";
  const size = end + END.length;
  const text = bytes.toString("latin1", 0, size);
  if (size > maxSize || !USUAL.test(text)) return "unusual";
  const lineEnd = text.indexOf("\r\n");
  const headers = readFields(text, lineEnd + 2, end);
  const contentLength = headers === undefined ? undefined : lengthOf(headers);
  if (headers === undefined || contentLength === undefined || !isUsual(headers)) return "unusual";
  const space = text.indexOf(" ");
  const target = text.slice(space + 1, lineEnd - " HTTP/1.1".length);
  return { method: text.slice(0, space), target, headers, contentLength, size };
}

/** What does not begin as a method is no head in the making: the empty line before a request (RFC 9112 §2.2), TLS, noise. */
function isUpperCase(byte = 0): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

/** undefined when a name comes twice: which of two counts is not asked here. */
function readFields(text: string, from: number, end: number): Headers | undefined {
  const fields: Record<string, string> = Object.create(null);
  for (let at = from; at < end; ) {
    const colon = text.indexOf(":", at);
    const lineEnd = text.indexOf("\r\n", colon);
    const name = text.slice(at, colon).toLowerCase();
    if (fields[name] !== undefined) return undefined;
    fields[name] = text.slice(colon + 1, lineEnd).trim();
    at = lineEnd + 2;
  }
  return fields;
}

/** Of a request that says none the length is 0 (RFC 9112 §6.3). */
function lengthOf({ "content-length": length = "0" }: Headers): number | undefined {
  return /^(?:0|[1-9]\d{0,8})$/.test(length) ? Number(length) : undefined;
}

function isUsual(headers: Headers): boolean {
  const { host, connection } = headers;
  if (host === undefined || UNUSUAL.some((name) => headers[name] !== undefined)) return false;
  return connection === undefined || connection.toLowerCase() === "keep-alive";
}
