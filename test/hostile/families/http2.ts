import { Flag, Frame, frame, headerBlock, PREFACE } from "../../support/http2-wire.ts";
import { type Seeded, seeded } from "../../support/seeded.ts";
import { CALLS, type CallTarget, type Field, type MakeRequest, OTHER_REQUESTS } from "../calls.ts";
import { escaped, type Family, type HostileCase } from "../case.ts";
import type { CaseContext } from "../case-context.ts";
import { split, Transmission } from "../damage.ts";
import { http2Faults } from "../faults.ts";
import type { Ending } from "../http1.ts";
import { fieldsOf, resetFrame, uint32 } from "../http2.ts";
import { converseHttp2, type Http2Outcome } from "../http2-exchange.ts";
import type { Target } from "../target.ts";
import { chooseFlood, chooseOddFrames } from "./http2-frames.ts";

/** HTTP/2 requests, complete and incomplete, interleaved with unusual or invalid frames and floods. */
export const http2: Family = {
  name: "http2",
  parallel: 16,
  weight: 4,
  generate: (random, context) => new Http2Case(random, context),
};

/** The preface, with windows that exceed every response of Keyhold. */
const HELLO = Buffer.concat([
  PREFACE,
  frame(Frame.SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 4), uint32(2 ** 24)])),
  frame(Frame.WINDOW_UPDATE, 0, 0, uint32(2 ** 24)),
]);

/** Maximum CPU time of one tick in milliseconds for a flood of frames, which is thousands of requests. */
const MAX_FLOOD_TICK = 1_000;

/** Milliseconds without data after which missing responses are not awaited. */
const TIMEOUT = 500;
const LONG_TIMEOUT = 5_000;

/** A part of the input, with the same length for any target of its call. */
interface Part {
  /** 0 for frames of no request. */
  readonly stream: number;
  readonly bytes: (target: CallTarget, credentials: readonly Field[]) => Buffer;
  /** Whether this part completes the request. */
  readonly isEnd?: boolean;
}

class Http2Case implements HostileCase {
  readonly kind: string;
  readonly maxTick: number | undefined;
  readonly #context: CaseContext;
  readonly #parts: readonly Part[];
  readonly #uncertain: readonly number[];
  readonly #transmission: Transmission;
  readonly #ending: Ending;

  constructor(random: Seeded, context: CaseContext) {
    this.#context = context;
    const streams = Array.from({ length: random.below(5) }, (_, place) => chooseStream(random, 2 * place + 1));
    const oddStream = 2 * random.below(streams.length + 1) + 1;
    const odd = random.below(3) === 0 ? [] : [chooseOdd(random, oddStream)];
    // An unusual frame may complete a request.
    this.#uncertain = odd.length === 0 ? [] : [1, oddStream];
    this.maxTick = odd.some(({ kind }) => kind.startsWith("flood")) ? MAX_FLOOD_TICK : undefined;
    this.#parts = interleaved([...streams, ...odd.map(({ part }) => [part])], random);
    this.#transmission = new Transmission(random, { damage: 8, cut: 5 });
    this.#ending = random.pick(
      this.#transmission.isTruncated ? ["half-close", "reset"] : ["wait", "wait", "wait", "half-close", "reset"],
    );
    const forms = [
      ...(odd.length === 0 ? ["requests"] : odd.map(({ kind }) => kind)),
      ...this.#transmission.forms.filter((form) => form !== "fragmented"),
      ...(this.#ending === "wait" ? [] : [this.#ending]),
    ];
    this.kind = forms.join(", ");
  }

  description(target: Target): string {
    const { bytes } = this.#bytes(target.maskedCredentials);
    return [this.kind, ...this.#transmission.split(bytes).map((segment) => escaped(segment))].join("\n");
  }

  async run(target: Target): Promise<readonly string[]> {
    const { bytes, complete } = this.#bytes(target.credentials);
    const segments = this.#transmission.split(bytes);
    const ask = async (timeout: number) => {
      const options = { ending: this.#ending, awaited: complete, timeout };
      const ours = await converseHttp2(target.port, segments, { ...options, tls: target.tls });
      const faults = http2Faults(ours);
      // When a flood is rejected depends on how it is split into reads.
      if (this.#ending !== "wait" || this.maxTick !== undefined) return { faults, differences: [] };
      const theirs = await converseHttp2(this.#context.references.http2Port, segments, options);
      return { faults, differences: compare(ours, theirs, complete) };
    };
    const { faults, differences } = await ask(TIMEOUT);
    // One of the servers may have been slow.
    return differences.length === 0 ? faults : [...faults, ...(await ask(LONG_TIMEOUT)).differences];
  }

  /** Returns the bytes and the streams with complete requests. The other requests act on the keys that the monitor watches. */
  #bytes(credentials: readonly Field[]): { readonly bytes: Buffer; readonly complete: readonly number[] } {
    const { unfinished, completed } = this.#context.monitor;
    const parts = this.#parts.map(({ bytes }) => bytes(completed(), credentials));
    const length = HELLO.length + parts.reduce((sum, part) => sum + part.length, 0);
    const end = this.#transmission.end(length);
    let offset = HELLO.length;
    const complete = this.#parts.flatMap(({ stream, isEnd }, place) => {
      offset += parts[place]?.length ?? 0;
      return isEnd && offset <= end ? [stream] : [];
    });
    const done = completed();
    const never = unfinished();
    // Damage may complete a request too.
    const mayComplete = (stream: number) =>
      this.#transmission.isDamaged || complete.includes(stream) || this.#uncertain.includes(stream);
    const sent = this.#parts.map(({ stream, bytes }) => bytes(mayComplete(stream) ? done : never, credentials));
    const cut = Buffer.concat(sent).subarray(0, Math.max(0, end - HELLO.length));
    return { bytes: Buffer.concat([HELLO, this.#transmission.damaged(cut)]), complete };
  }
}

/** Chooses a request and its outcome. Returns its frames. */
function chooseStream(random: Seeded, stream: number): Part[] {
  const make: MakeRequest = random.below(3) === 0 ? constant(random.pick(OTHER_REQUESTS)) : random.pick(CALLS);
  const isKnown = random.below(8) !== 0;
  const outcome = random.below(10);
  const excess = outcome === 0 ? 1 + random.below(20) : undefined;
  const isPadded = random.below(5) === 0;
  const pieces = 1 + random.below(3);
  const seed = random.below(2 ** 31);
  const headers: Part = {
    stream,
    bytes: (target, credentials) => {
      const request = make(target);
      const length: Field[] = excess === undefined ? [] : [["content-length", String(request.body.length + excess)]];
      return headerFrames(stream, [...fieldsOf(request), ...(isKnown ? credentials : []), ...length], seeded(seed));
    },
  };
  const data = Array.from(
    { length: pieces },
    (_, place): Part => ({
      stream,
      bytes: (target) => dataFrame(stream, piece(make(target).body, place, pieces), isPadded),
    }),
  );
  if (outcome === 1) return [headers, ...data.slice(0, random.below(pieces + 1))];
  if (outcome === 2) return [headers, ...data, { stream, bytes: constant(resetFrame(stream, random.below(14))) }];
  const end = { stream, bytes: constant(frame(Frame.DATA, Flag.END_STREAM, stream)), isEnd: excess === undefined };
  return [headers, ...data, end];
}

function constant<T>(value: T): () => T {
  return () => value;
}

function piece(body: Buffer, place: number, pieces: number): Buffer {
  const size = Math.ceil(body.length / pieces);
  return body.subarray(place * size, (place + 1) * size);
}

function dataFrame(stream: number, bytes: Buffer, isPadded: boolean): Buffer {
  if (!isPadded) return frame(Frame.DATA, 0, stream, bytes);
  return frame(Frame.DATA, Flag.PADDED, stream, Buffer.concat([Buffer.of(8), bytes, Buffer.alloc(8)]));
}

/** Returns HEADERS, with the rest of the block in CONTINUATION frames. */
function headerFrames(stream: number, fields: readonly Field[], random: Seeded): Buffer {
  const [first = Buffer.alloc(0), ...rest] = split(headerBlock(fields), 1 + random.below(3), random);
  const flags = (place: number) => (place === rest.length ? Flag.END_HEADERS : 0);
  const following = rest.map((part, place) => frame(Frame.CONTINUATION, flags(place + 1), stream, part));
  return Buffer.concat([frame(Frame.HEADERS, flags(0), stream, first), ...following]);
}

function chooseOdd(random: Seeded, stream: number): { readonly kind: string; readonly part: Part } {
  const { kind, bytes } = random.below(10) === 0 ? chooseFlood(random) : chooseOddFrames(random, stream);
  return { kind, part: { stream: 0, bytes: constant(bytes) } };
}

/** Interleaves lists randomly; keeps the order within each list. */
function interleaved<T>(lists: readonly (readonly T[])[], random: Seeded): T[] {
  const rest = lists.map((list) => [...list]).filter(({ length }) => length > 0);
  const all: T[] = [];
  while (rest.length > 0) {
    const list = random.pick(rest);
    all.push(...list.splice(0, 1));
    if (list.length === 0) rest.splice(rest.indexOf(list), 1);
  }
  return all;
}

/** Compares the connection errors and the ends of these streams with those of plain `node:http2`. */
function compare(ours: Http2Outcome, theirs: Http2Outcome, awaited: readonly number[]): string[] {
  const seen = `${shownOutcome(ours)}, and node:http2 ${shownOutcome(theirs)}`;
  if (ours.malformed !== undefined) return [`malformed frames: ${ours.malformed}`];
  // After the client's GOAWAY, Node closes at once or when the connection is idle, depending on pending writes.
  if (ours.goaway === 0 && theirs.goaway === 0) return [];
  if (ours.isClosed !== theirs.isClosed) return [`only one server closed the connection: ${seen}`];
  // A reset connection may lose its GOAWAY.
  const isSame = ours.isClosed && (ours.goaway === undefined || theirs.goaway === undefined);
  if (!isSame && ours.goaway !== theirs.goaway) return [`different connection errors: ${seen}`];
  if (ours.isClosed) return [];
  return awaited.flatMap((id) => {
    const [our, their] = [ours.streams.get(id), theirs.streams.get(id)];
    if (!their?.isEnded) return [];
    if (!our?.isEnded) return [`stream ${id} was not answered: ${seen}`];
    return our.fields[":status"] === undefined && our.reset !== their.reset
      ? [`stream ${id} was reset with another code: ${seen}`]
      : [];
  });
}

function shownOutcome({ streams, goaway, isClosed }: Http2Outcome): string {
  const description = [...streams].map(([id, { fields, isEnded, reset }]) => [id, fields[":status"], isEnded, reset]);
  return JSON.stringify({ goaway, isClosed, streams: description });
}
