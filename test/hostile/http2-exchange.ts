import { setImmediate } from "node:timers/promises";
import { HpackDecoder } from "../support/hpack.ts";
import { Flag, Frame, frame, frames, type ReceivedFrame } from "../support/http2-wire.ts";
import { openConnection } from "./connection.ts";
import type { Ending } from "./http1.ts";

/** The frames received on one stream. */
export interface StreamOutcome {
  /** Fields of the header and the trailers. */
  readonly fields: Record<string, string>;
  body: string;
  isEnded: boolean;
  /** Error code of RST_STREAM. */
  reset: number | undefined;
}

/** The frames received on one connection. */
export interface Http2Outcome {
  readonly streams: ReadonlyMap<number, StreamOutcome>;
  /** Error code of the first GOAWAY. */
  readonly goaway: number | undefined;
  readonly isClosed: boolean;
  /** The error in malformed frames. */
  readonly malformed: string | undefined;
}

export interface Http2ExchangeOptions {
  readonly ending: Ending;
  /** Streams whose end is awaited. */
  readonly awaited: readonly number[];
  /** Milliseconds without data after which missing frames are not awaited. */
  readonly timeout: number;
  readonly tls?: boolean;
}

const PING = Buffer.from("hostile!");

/** Sends segments, then a PING unless the connection is ended at once. Returns what was received until every awaited stream had ended. */
export async function converseHttp2(
  port: number,
  segments: readonly Uint8Array[],
  { ending, awaited, timeout, tls = false }: Http2ExchangeOptions,
): Promise<Http2Outcome> {
  const reader = new FrameReader();
  const { socket, reset } = openConnection(port, tls ? "h2" : undefined);
  let isClosed = false;
  const { promise: isLate, resolve: giveUp } = Promise.withResolvers<void>();
  const timer = setTimeout(giveUp, timeout);
  const done = new Promise<void>((resolve) => {
    const close = () => {
      isClosed = true;
      resolve();
    };
    socket.once("end", close).once("close", close).on("error", close);
    socket.on("data", (bytes: Buffer) => {
      timer.refresh();
      reader.read(bytes);
      if (reader.isAnswered(awaited)) resolve();
    });
  });
  for (const segment of segments) {
    if (!socket.destroyed) await new Promise<void>((resolve) => socket.write(segment, () => resolve()));
    await setImmediate();
  }
  if (ending === "wait") socket.write(frame(Frame.PING, 0, 0, PING));
  if (ending === "half-close") socket.end();
  if (ending === "reset") reset();
  timer.refresh();
  await Promise.race([done, isLate]);
  clearTimeout(timer);
  const outcome = { streams: reader.streams, goaway: reader.goaway, isClosed, malformed: reader.malformed };
  socket.destroy();
  return outcome;
}

/** Parses the frames of a server. */
class FrameReader {
  readonly streams = new Map<number, StreamOutcome>();
  goaway: number | undefined;
  malformed: string | undefined;
  readonly #decoder = new HpackDecoder();
  #rest: Buffer = Buffer.alloc(0);
  #block: Buffer = Buffer.alloc(0);
  #isAcknowledged = false;

  read(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (const received of frames(this.#rest)) {
      this.#rest = this.#rest.subarray(9 + received.payload.length);
      try {
        this.#receive(received);
      } catch (error) {
        this.malformed ??= String(error);
      }
    }
  }

  isAnswered(awaited: readonly number[]): boolean {
    return this.#isAcknowledged && awaited.every((id) => this.streams.get(id)?.isEnded);
  }

  #receive({ type, flags, stream: id, payload }: ReceivedFrame): void {
    switch (type) {
      case Frame.HEADERS:
      case Frame.CONTINUATION:
        this.#receiveHeaders(this.#of(id), flags, payload, type === Frame.HEADERS);
        break;
      case Frame.DATA:
        this.#of(id).body += payload.toString("latin1");
        if ((flags & Flag.END_STREAM) !== 0) this.#of(id).isEnded = true;
        break;
      case Frame.RST_STREAM:
        this.#of(id).reset = payload.readUInt32BE();
        this.#of(id).isEnded = true;
        break;
      case Frame.GOAWAY:
        this.goaway ??= payload.readUInt32BE(4);
        break;
      case Frame.PING:
        if ((flags & Flag.ACK) !== 0 && payload.equals(PING)) this.#isAcknowledged = true;
    }
  }

  #receiveHeaders(stream: StreamOutcome, flags: number, payload: Buffer, isFirst: boolean): void {
    this.#block = isFirst ? payload : Buffer.concat([this.#block, payload]);
    // Node sends neither padding nor priorities.
    if (isFirst && (flags & Flag.END_STREAM) !== 0) stream.isEnded = true;
    if ((flags & Flag.END_HEADERS) === 0) return;
    // Interim answers are followed by the real one.
    Object.assign(stream.fields, Object.fromEntries(this.#decoder.decode(this.#block)));
  }

  #of(id: number): StreamOutcome {
    const known = this.streams.get(id) ?? { fields: {}, body: "", isEnded: false, reset: undefined };
    this.streams.set(id, known);
    return known;
  }
}
