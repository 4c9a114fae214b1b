/** A header field (RFC 9113 §8.2). */
export type HeaderField = readonly [name: string, value: string];

/** RFC 7541, appendix A; the first entry has the index 1. */
const STATIC_TABLE: readonly HeaderField[] = [
  ":authority| :method|GET :method|POST :path|/ :path|/index.html :scheme|http :scheme|https :status|200 :status|204 :status|206",
  ":status|304 :status|400 :status|404 :status|500 accept-charset| accept-encoding|gzip,~deflate accept-language| accept-ranges|",
  "accept| access-control-allow-origin| age| allow| authorization| cache-control| content-disposition| content-encoding|",
  "content-language| content-length| content-location| content-range| content-type| cookie| date| etag| expect| expires| from|",
  "host| if-match| if-modified-since| if-none-match| if-range| if-unmodified-since| last-modified| link| location| max-forwards|",
  "proxy-authenticate| proxy-authorization| range| referer| refresh| retry-after| server| set-cookie| strict-transport-security|",
  "transfer-encoding| user-agent| vary| via| www-authenticate|",
].flatMap((line) =>
  line.split(" ").map((field): HeaderField => {
    const [name = "", value = ""] = field.split("|");
    return [name, value.replace("~", " ")];
  }),
);

/** Code lengths in bits (RFC 7541, appendix B), one base-36 digit per byte; the code is canonical. */
const CODE_LENGTHS =
  "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6cad67777777777777777777777878djde6f5656566657766" +
  "6567655677777fbedskmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmnqqkjmnmpqqqrrqopjlqrrqrollqq" +
  "srrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq";

/** Bytes by code, written as a string of zeros and ones. */
const HUFFMAN = canonicalCode(CODE_LENGTHS);

function canonicalCode(lengths: string): ReadonlyMap<string, number> {
  const symbols = [...lengths].map((digit, byte) => ({ byte, length: Number.parseInt(digit, 36) }));
  const codes = new Map<string, number>();
  let [code, previous] = [0, 0];
  for (const { byte, length } of symbols.toSorted((a, b) => a.length - b.length || a.byte - b.byte)) {
    code *= 2 ** (length - previous);
    previous = length;
    codes.set(code.toString(2).padStart(length, "0"), byte);
    code++;
  }
  return codes;
}

/** Decodes the header blocks of one connection in order (RFC 7541). Throws for a malformed block. */
export class HpackDecoder {
  /** Newest entry first. */
  readonly #dynamic: HeaderField[] = [];

  decode(block: Buffer): HeaderField[] {
    const reader = new BlockReader(block);
    const fields: HeaderField[] = [];
    while (!reader.isDone) {
      const first = reader.peek();
      if (first >= 0x80) fields.push(this.#at(reader.integer(7)));
      else if (first >= 0x40) fields.push(this.#remember(this.#literal(reader, 6)));
      else if (first >= 0x20) this.#resize(reader.integer(5));
      else fields.push(this.#literal(reader, 4));
    }
    return fields;
  }

  #literal(reader: BlockReader, prefix: number): HeaderField {
    const index = reader.integer(prefix);
    const name = index === 0 ? reader.text() : this.#at(index)[0];
    return [name, reader.text()];
  }

  /** Evicted fields may stay, since no encoder refers to them; but size 0 evicts all. */
  #resize(bytes: number): void {
    if (bytes === 0) this.#dynamic.length = 0;
  }

  #remember(field: HeaderField): HeaderField {
    this.#dynamic.unshift(field);
    return field;
  }

  #at(index: number): HeaderField {
    const field = STATIC_TABLE[index - 1] ?? this.#dynamic[index - 1 - STATIC_TABLE.length];
    if (field === undefined) throw new Error(`no field with index ${index}`);
    return field;
  }
}

class BlockReader {
  readonly #block: Buffer;
  #offset = 0;

  constructor(block: Buffer) {
    this.#block = block;
  }

  get isDone(): boolean {
    return this.#offset >= this.#block.length;
  }

  peek(): number {
    return this.#block.readUInt8(this.#offset);
  }

  /** RFC 7541 §5.1; `prefix` is its length in bits. */
  integer(prefix: number): number {
    const limit = 2 ** prefix - 1;
    let value = this.#block.readUInt8(this.#offset++) & limit;
    if (value < limit) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#block.readUInt8(this.#offset++);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  /** RFC 7541 §5.2. */
  text(): string {
    const isHuffman = this.peek() >= 0x80;
    const length = this.integer(7);
    const bytes = this.#block.subarray(this.#offset, this.#offset + length);
    if (bytes.length < length) throw new Error("truncated string");
    this.#offset += length;
    return isHuffman ? decodeHuffman(bytes) : bytes.toString("latin1");
  }
}

function decodeHuffman(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  let [text, code] = ["", ""];
  for (const bit of bits) {
    code += bit;
    const byte = HUFFMAN.get(code);
    if (byte === undefined) continue;
    text += String.fromCharCode(byte);
    code = "";
  }
  return text;
}
