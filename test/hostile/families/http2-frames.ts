import { Flag, Frame, frame, headerBlock } from "../../support/http2-wire.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { Field } from "../calls.ts";
import { goawayFrame, headersFrame, resetFrame, uint32 } from "../http2.ts";

/** Frames at any position of a connection, most of which are errors. `stream` is an open stream, or the next one. */
type MakeFrames = (stream: number, random: Seeded) => Buffer;

const GET: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/health/alive"],
  [":authority", "localhost"],
];

function get(stream: number, fields: readonly Field[]): Buffer {
  return headersFrame(stream, fields, Flag.END_STREAM);
}

function without(name: string): readonly Field[] {
  return GET.filter(([one]) => one !== name);
}

/** Header lists that RFC 9113 §8 forbids, or unusual ones. */
const HEADER_LISTS: readonly (readonly Field[])[] = [
  without(":method"),
  without(":scheme"),
  without(":path"),
  without(":authority"),
  [...without(":path"), [":path", ""]],
  [...without(":path"), [":path", "*"]],
  [...without(":path"), [":path", "health"]],
  [...without(":path"), [":path", "//health/alive"]],
  [...without(":path"), [":path", "/%zz"]],
  [...without(":path"), [":path", `/${"a".repeat(15_000)}`]],
  [...without(":authority"), [":authority", "a b"]],
  [...without(":authority"), [":authority", "user@localhost"]],
  [...without(":authority"), [":authority", "1.2.3.4.5"]],
  [...without(":authority"), [":authority", ""]],
  [...without(":authority"), ["host", "localhost"]],
  [...GET, ["host", "example.com"]],
  [...GET, [":path", "/"]],
  [...GET, [":status", "200"]],
  [...GET, [":protocol", "websocket"]],
  [["a", "b"], ...GET],
  [...GET, ["Upper", "a"]],
  [...GET, ["", "a"]],
  [...GET, ["a b", "c"]],
  [...GET, ["a", "b\r\nc: d"]],
  [...GET, ["a", "b\0c"]],
  [...GET, ["a", " b "]],
  [...GET, ["a", "\xff"]],
  [...GET, ["connection", "close"]],
  [...GET, ["transfer-encoding", "chunked"]],
  [...GET, ["upgrade", "h2c"]],
  [...GET, ["keep-alive", "1"]],
  [...GET, ["te", "gzip"]],
  [...GET, ["te", "trailers"]],
  [...GET, ["content-length", "5"]],
  [...GET, ["content-length", "x"]],
  [...GET, ["content-length", "0"], ["content-length", "0"]],
  [...GET, ["expect", "100-continue"]],
  [...GET, ["expect", "something else"]],
  [...GET, ["cookie", "a"], ["cookie", "b"]],
  [...GET, ...Array.from({ length: 200 }, (_, place): Field => [`x-${place}`, "a".repeat(60)])],
  [...GET, ...Array.from({ length: 2_000 }, (): Field => ["a", ""])],
  [...without(":method"), [":method", "CONNECT"]],
  [
    [":method", "CONNECT"],
    [":authority", "localhost:443"],
  ],
  [...without(":method"), [":method", "QUERY"]],
  [...without(":method"), [":method", "PRI"]],
  [...without(":method"), [":method", ""]],
  [...without(":method"), [":method", "G T"]],
];

/** Header blocks that are not HPACK (RFC 7541), or refer to missing entries. */
const BLOCKS: readonly string[] = [
  "80",
  "ff",
  "ffffffffffffff7f",
  "c0",
  "be",
  "3fffffff7f",
  "20",
  "00",
  "0001",
  "0085ffffffffff",
  "0081ff0161",
  "82868441",
  "3fe11f82868441",
  "82868484",
  "40016101627e7e7e7e82868441016c",
];

const SETTINGS: readonly (readonly [id: number, value: number])[] = [
  [1, 0],
  [1, 2 ** 32 - 1],
  [2, 1],
  [2, 2],
  [3, 0],
  [3, 2 ** 32 - 1],
  [4, 0],
  [4, 1],
  [4, 2 ** 31 - 1],
  [4, 2 ** 31],
  [5, 0],
  [5, 16_384],
  [5, 2 ** 24],
  [6, 0],
  [6, 1],
  [8, 1],
  [8, 2],
  [0, 1],
  [0xffff, 1],
];

function settingsFrame([id, value]: readonly [number, number]): Buffer {
  return frame(Frame.SETTINGS, 0, 0, Buffer.concat([Buffer.of(id >> 8, id & 0xff), uint32(value)]));
}

const ZEROS = Buffer.alloc(64);

/** Single frames and short sequences, by description. */
const ODD_FRAMES: Readonly<Record<string, MakeFrames>> = {
  "header list": (stream, random) => get(stream, random.pick(HEADER_LISTS)),
  "header block": (stream, random) =>
    frame(Frame.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, stream, Buffer.from(random.pick(BLOCKS), "hex")),
  settings: (_, random) => settingsFrame(random.pick(SETTINGS)),
  "settings of a wrong form": (stream, random) =>
    random.pick([
      frame(Frame.SETTINGS, 0, 0, ZEROS.subarray(0, 5)),
      frame(Frame.SETTINGS, Flag.ACK, 0, ZEROS.subarray(0, 6)),
      frame(Frame.SETTINGS, 0, stream, ZEROS.subarray(0, 6)),
      frame(Frame.SETTINGS, Flag.ACK, 0),
    ]),
  ping: (stream, random) =>
    random.pick([
      frame(Frame.PING, 0, 0, ZEROS.subarray(0, 8)),
      frame(Frame.PING, Flag.ACK, 0, ZEROS.subarray(0, 8)),
      frame(Frame.PING, 0, 0, ZEROS.subarray(0, 7)),
      frame(Frame.PING, 0, stream, ZEROS.subarray(0, 8)),
    ]),
  goaway: (stream, random) =>
    random.pick([
      goawayFrame(0),
      goawayFrame(stream, 2),
      goawayFrame(2 ** 31 - 1, 11),
      frame(Frame.GOAWAY, 0, 0, ZEROS.subarray(0, 7)),
      frame(Frame.GOAWAY, 0, stream, ZEROS.subarray(0, 8)),
    ]),
  "window update": (stream, random) =>
    frame(
      Frame.WINDOW_UPDATE,
      0,
      random.pick([0, stream, stream + 100]),
      random.pick([uint32(0), uint32(1), uint32(2 ** 31 - 1), ZEROS.subarray(0, 3), uint32(2 ** 31)]),
    ),
  reset: (stream, random) =>
    random.pick([
      resetFrame(stream, random.below(20)),
      resetFrame(stream + 100),
      resetFrame(0),
      frame(Frame.RST_STREAM, 0, stream, ZEROS.subarray(0, 3)),
    ]),
  priority: (stream, random) =>
    random.pick([
      frame(Frame.PRIORITY, 0, stream, ZEROS.subarray(0, 5)),
      frame(Frame.PRIORITY, 0, stream, Buffer.concat([uint32(stream), Buffer.of(1)])),
      frame(Frame.PRIORITY, 0, 0, ZEROS.subarray(0, 5)),
      frame(Frame.PRIORITY, 0, stream, ZEROS.subarray(0, 4)),
    ]),
  "push promise": (stream) =>
    frame(Frame.PUSH_PROMISE, Flag.END_HEADERS, stream, Buffer.concat([uint32(2), headerBlock(GET)])),
  continuation: (stream, random) =>
    random.pick([
      frame(Frame.CONTINUATION, Flag.END_HEADERS, stream, headerBlock(GET)),
      Buffer.concat([frame(Frame.HEADERS, 0, stream, headerBlock(GET)), frame(Frame.PING, 0, 0, ZEROS.subarray(0, 8))]),
      Buffer.concat([frame(Frame.HEADERS, 0, stream), frame(Frame.CONTINUATION, Flag.END_HEADERS, stream + 2)]),
    ]),
  data: (stream, random) =>
    random.pick([
      frame(Frame.DATA, 0, stream, ZEROS),
      frame(Frame.DATA, Flag.END_STREAM, stream, ZEROS),
      frame(Frame.DATA, 0, 0, ZEROS),
      frame(Frame.DATA, 0, stream + 100, ZEROS),
      frame(Frame.DATA, Flag.PADDED, stream, Buffer.of(200, 1)),
      frame(Frame.DATA, Flag.PADDED, stream),
      frame(Frame.DATA, 0, stream, Buffer.alloc(16_385)),
    ]),
  "headers of a wrong form": (stream, random) =>
    random.pick([
      get(0, GET),
      get(stream + 1, GET),
      get(1, GET),
      headersFrame(stream, [["a", "b"]], Flag.END_STREAM),
      headersFrame(stream, [["a", "b"]]),
      headersFrame(stream, [[":path", "/"]], Flag.END_STREAM),
      frame(Frame.HEADERS, Flag.END_HEADERS | Flag.PADDED, stream, Buffer.of(255, 0x82)),
      frame(Frame.HEADERS, Flag.END_HEADERS | Flag.PRIORITY, stream, Buffer.concat([uint32(stream), Buffer.of(1)])),
      frame(Frame.HEADERS, Flag.END_HEADERS | Flag.PRIORITY, stream, ZEROS.subarray(0, 3)),
    ]),
  "unknown frame": (stream, random) =>
    frame(10 + random.below(246), random.below(256), random.pick([0, stream]), ZEROS.subarray(0, random.below(64))),
  noise: (_, random) => Buffer.from(Array.from({ length: 9 + random.below(40) }, () => random.below(256))),
};

/** Chooses unusual frames. Returns them with their description. */
export function chooseOddFrames(random: Seeded, stream: number): { readonly kind: string; readonly bytes: Buffer } {
  const [kind, make] = random.pick(Object.entries(ODD_FRAMES));
  return { kind, bytes: make(stream, random) };
}

/** Frames that are cheap to send and may be expensive to receive, repeated; the number is the count per connection. */
const FLOODS: Readonly<Record<string, (index: number) => Buffer>> = {
  "opened and reset streams": (index) => Buffer.concat([get(2 * index + 1, GET), resetFrame(2 * index + 1)]),
  "streams without an end": (index) => headersFrame(2 * index + 1, [...GET.slice(1), [":method", "POST"]]),
  "streams that are not read": (index) => get(2 * index + 1, [...without(":path"), [":path", "/openapi.json"]]),
  settings: () => frame(Frame.SETTINGS, 0, 0, ZEROS.subarray(0, 0)),
  "table sizes": (index) => settingsFrame([1, index % 2 === 0 ? 0 : 4_096]),
  windows: (index) => settingsFrame([4, index % 2 === 0 ? 0 : 65_535]),
  pings: () => frame(Frame.PING, 0, 0, ZEROS.subarray(0, 8)),
  "ping acknowledgements": () => frame(Frame.PING, Flag.ACK, 0, ZEROS.subarray(0, 8)),
  priorities: (index) => frame(Frame.PRIORITY, 0, 2 * index + 1, ZEROS.subarray(0, 5)),
  "window updates": () => frame(Frame.WINDOW_UPDATE, 0, 0, uint32(1)),
  continuations: (index) =>
    index === 0
      ? frame(Frame.HEADERS, 0, 1, headerBlock(GET))
      : frame(Frame.CONTINUATION, 0, 1, headerBlock([["a", "b"]])),
  "empty continuations": (index) => (index === 0 ? frame(Frame.HEADERS, 0, 1) : frame(Frame.CONTINUATION, 0, 1)),
  "empty data": (index) =>
    index === 0 ? headersFrame(1, [...GET.slice(1), [":method", "POST"]]) : frame(Frame.DATA, 0, 1),
  "padded data": (index) =>
    index === 0
      ? headersFrame(1, [...GET.slice(1), [":method", "POST"]])
      : frame(Frame.DATA, Flag.PADDED, 1, Buffer.of(255, ...Buffer.alloc(255))),
  "unknown frames": () => frame(200, 0, 0),
  "header fields of the table": (index) => tableBomb(index),
};

/** Adds one large field to the HPACK table and refers to it many times in each block. */
function tableBomb(index: number): Buffer {
  const put = Buffer.concat([Buffer.of(0x40), headerBlock([["x", "a".repeat(3_000)]]).subarray(1)]);
  const block = index === 0 ? put : Buffer.alloc(4_000, 0xbe);
  const request = Buffer.concat([headerBlock(GET), block]);
  return frame(Frame.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 2 * index + 1, request);
}

/** Chooses a flood of frames. Returns it with its description. */
export function chooseFlood(random: Seeded): { readonly kind: string; readonly bytes: Buffer } {
  const [kind, make] = random.pick(Object.entries(FLOODS));
  const length = 100 + random.below(1_900);
  return { kind: `flood of ${kind}`, bytes: Buffer.concat(Array.from({ length }, (_, index) => make(index))) };
}
