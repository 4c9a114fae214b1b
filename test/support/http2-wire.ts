/** The client's connection preface (RFC 9113 §3.4). */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Frame types (RFC 9113 §6). */
export const Frame = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flags of frames (RFC 9113 §6). */
export const Flag = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 0x20 } as const;

/** A frame (RFC 9113 §4.1). */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

/** Returns a complete `GET /` with authority "x"; static HPACK indexes of RFC 7541, appendix A. */
export function getFrame(stream: number): Buffer {
  return frame(Frame.HEADERS, 0x5, stream, Buffer.from([0x82, 0x86, 0x84, 0x41, 0x01, 0x78]));
}

/** Returns a header block (RFC 7541) of literal fields without indexing or Huffman coding (§6.2.2). */
export function headerBlock(fields: Iterable<readonly [name: string, value: string]>): Buffer {
  return Buffer.concat([...fields].flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]));
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([prefixedInteger(bytes.length), bytes]);
}

/** Returns an integer with a prefix of seven bits, whose first bit is 0 (RFC 7541 §5.1). */
function prefixedInteger(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Returns the complete frames at the beginning of `bytes`. */
export function frames(bytes: Buffer): ReceivedFrame[] {
  const found: ReceivedFrame[] = [];
  for (let rest = bytes; rest.length >= 9; ) {
    const end = 9 + rest.readUIntBE(0, 3);
    if (rest.length < end) break;
    const [type, flags, stream] = [rest.readUInt8(3), rest.readUInt8(4), rest.readUInt32BE(5)];
    found.push({ type, flags, stream, payload: rest.subarray(9, end) });
    rest = rest.subarray(end);
  }
  return found;
}
