import type { Socket } from "node:net";
import { readHead } from "./head.ts";
import { Http1Message } from "./message.ts";
import type { Http1Response, ResponseWriter } from "./response.ts";

/** What connections share. */
export interface ConnectionContext {
  /** Answers whether the message is taken: then it will be responded to. */
  readonly take: (message: Http1Message) => boolean;
  /** Gets a connection for good, with all that has not been taken still to be read. */
  readonly handOver: (socket: Socket) => void;
  /** Gets a connection that ended in the middle of a message. */
  readonly cutShort: (socket: Socket) => void;
  /** Called when the connection is closed or handed over. */
  readonly left: (connection: Http1Connection) => void;
  readonly writer: ResponseWriter;
  /** Bytes. */
  readonly maxHeadSize: number;
  /** Milliseconds that the connection may stand still. */
  readonly keepAliveTimeout: number;
}

/** A message that has not come whole by then is left to a parser that does not need it whole: milliseconds, reads, bytes. */
const PATIENCE = { time: 1_000, reads: 8, size: 2 ** 17 } as const;

/** What a client may send ahead of the answer to come, in bytes, before no more is read. */
const MAX_AHEAD = 2 ** 16;

const NOTHING: Buffer = Buffer.alloc(0);

/**
 * HTTP/1.1 on one connection, as long as every request is of the usual form, comes whole and is taken. With the first that is not
 * the connection is given away. Most connections never see one, and for them this takes a third of what `node:http` takes.
 */
export class Http1Connection {
  readonly #socket: Socket;
  readonly #context: ConnectionContext;
  /** Read, and not taken yet. */
  #rest = NOTHING;
  /** In how many reads it came. */
  #reads = 0;
  #patience: NodeJS.Timeout | undefined;
  #current: Http1Message | undefined;
  #isServing = false;
  #isClosing = false;

  constructor(socket: Socket, context: ConnectionContext) {
    this.#socket = socket;
    this.#context = context;
    socket.setTimeout(context.keepAliveTimeout);
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
    socket.on("drain", this.#onDrain).on("timeout", this.#onTimeout).on("error", ignore);
  }

  /**
   * The connection ends after the next response, that to the request under way if there is one. What the client has sent behind it
   * is not served, and the client knows: the response says `Connection: close` (RFC 9112 §9.6).
   */
  windDown(): void {
    this.#isClosing = true;
  }

  /** Ends the connection unless a request is under way or has begun to come. */
  endIfResting(): void {
    if (this.#current === undefined && this.#rest.length === 0) this.#socket.destroySoon();
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#reads++;
    if (!this.#isBusy()) this.#serve();
    else if (this.#rest.length > MAX_AHEAD) this.#socket.pause();
  };

  readonly #onEnd = (): void => {
    if (this.#rest.length > 0 && !this.#isBusy()) this.#context.cutShort(this.#socket);
    else this.#socket.destroySoon();
    this.#lose();
  };

  readonly #onClose = (): void => {
    this.#lose();
    clearTimeout(this.#patience);
    this.#context.left(this);
  };

  readonly #onDrain = (): void => {
    if (this.#current === undefined) this.#goOn();
  };

  readonly #onTimeout = (): void => {
    this.#socket.destroy();
  };

  /** A client that does not read its responses gets no more of them. */
  #isBusy(): boolean {
    return this.#current !== undefined || this.#socket.writableNeedDrain || !this.#socket.writable;
  }

  #lose(): void {
    this.#current?.lose();
    this.#current = undefined;
  }

  /** Serves what has come, one request after the other. */
  #serve(): void {
    this.#isServing = true;
    while (this.#rest.length > 0 && !this.#isBusy()) {
      const size = this.#takeNext();
      if (size === undefined) break;
      this.#rest = size === this.#rest.length ? NOTHING : this.#rest.subarray(size);
      this.#reads = this.#rest.length === 0 ? 0 : 1;
    }
    this.#isServing = false;
  }

  /** The size of the message that was taken; undefined if none was. */
  #takeNext(): number | undefined {
    const rest = this.#rest;
    const head = readHead(rest, this.#context.maxHeadSize);
    if (head === "partial") return this.#wait();
    if (head === "unusual" || head.contentLength > PATIENCE.size) return this.#handOver();
    const size = head.size + head.contentLength;
    if (rest.length < size) return this.#wait();
    const message = new Http1Message(head, rest.subarray(head.size, size), this.#send);
    this.#current = message;
    if (!this.#context.take(message)) return this.#handOver();
    clearTimeout(this.#patience);
    this.#patience = undefined;
    return size;
  }

  #wait(): undefined {
    if (this.#reads > PATIENCE.reads) return this.#handOver();
    this.#patience ??= setTimeout(() => this.#handOver(), PATIENCE.time);
  }

  readonly #send = (message: Http1Message, response: Http1Response): void => {
    if (this.#current !== message) return;
    this.#current = undefined;
    this.#write(response);
    if (this.#isClosing) this.#socket.destroySoon();
    else if (!this.#isServing) this.#goOn();
  };

  #write(response: Http1Response): void {
    const { writer, keepAliveTimeout } = this.#context;
    try {
      writer.write(this.#socket, response, this.#isClosing ? "close" : Math.floor(keepAliveTimeout / 1000));
    } catch (error) {
      this.#socket.destroy();
      throw error;
    }
  }

  #goOn(): void {
    if (this.#rest.length > 0) this.#serve();
    if (this.#socket.isPaused() && !this.#isBusy()) this.#socket.resume();
  }

  #handOver(): undefined {
    const socket = this.#socket;
    clearTimeout(this.#patience);
    this.#current = undefined;
    socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    socket.off("drain", this.#onDrain).off("timeout", this.#onTimeout).off("error", ignore);
    this.#context.left(this);
    if (this.#rest.length > 0) socket.unshift(this.#rest);
    this.#context.handOver(socket);
    if (socket.isPaused()) socket.resume();
  }
}

function ignore(): void {}
