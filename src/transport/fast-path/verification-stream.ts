import { setImmediate as nextTick } from "node:timers/promises";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { StreamVerifyErrorSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { toConnectError } from "../../api/errors.ts";
import type { Call, Pipeline } from "../../api/rpc.ts";
import type { Principal } from "../../domain/principal.ts";
import { memoize } from "../../lib/memoize.ts";
import type { FastifyCall } from "../wire/fastify-call.ts";
import { HttpError } from "../wire/http-error.ts";
import { malformed } from "../wire/protobuf.ts";
import type { Codec, Response } from "./codecs.ts";
import { AnswerWriter, ERROR, MessageReader, RESPONSE, readStreamRequest } from "./stream-messages.ts";

/** Requests of a stream that wait for their verdicts; the server reads no further ones meanwhile. */
export const MAX_UNANSWERED = 1_024;

/** Requests of a stream per tick of the event loop: about a millisecond of work. */
const MAX_PER_TICK = 256;

/** Received bytes of a stream from which on the server stops reading. */
const MAX_UNREAD = 65_536;

/** What streams do with their messages. */
export interface StreamedVerification {
  /** `admit` authorizes the caller of a stream, `invoke` verifies a credential. */
  readonly pipeline: Pipeline<Message, Response>;
  readonly codec: Codec<Uint8Array>;
  /** Resolves in a tick of the event loop that has time for a stream. */
  readonly turn: () => Promise<void>;
}

/** One stream, from its admission to its last answer. */
export class VerificationStream {
  readonly #rpc: StreamedVerification;
  readonly #call: FastifyCall;
  readonly #verification: Call;
  readonly #requests = new MessageReader();
  readonly #answers = new AnswerWriter();
  /** By verdict, or by the code of the error. */
  readonly #counts = new Map<string, number>();
  /** Requests that wait for the database. */
  #waiting = 0;
  /** Whether no further requests are taken. */
  #isComplete = false;
  /** What the stream ends with, if not with success. */
  #error: ConnectError | undefined;
  /** Whether it ends without the answers that are missing. */
  #isFailed = false;
  #wake = Promise.withResolvers<void>();
  #room = Promise.withResolvers<void>();

  constructor(rpc: StreamedVerification, call: FastifyCall) {
    this.#rpc = rpc;
    this.#call = call;
    this.#verification = countingCall(call, this.#counts);
  }

  /** Reads the requests, as long as the answers keep up. Never rejects. */
  async read(body: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of body) {
        if (this.#isComplete) return;
        this.#requests.add(chunk);
        this.#wake.resolve();
        while (this.#requests.size > MAX_UNREAD) await this.#room.promise;
      }
    } catch {
      this.complete(new HttpError("REQUEST_CANCELLED"));
    }
    this.complete();
  }

  /** Ends the stream when what was received is answered. */
  complete(error?: ConnectError): void {
    if (!this.#isComplete) this.#error ??= error;
    this.#isComplete = true;
    this.#wake.resolve();
  }

  /** Ends the stream with the answers that it has. */
  fail(error: ConnectError): void {
    this.#error ??= error;
    this.#isFailed = true;
    this.#wake.resolve();
  }

  /** Yields the answers of each tick. Throws the error with which the stream ends. */
  async *write(): AsyncGenerator<Uint8Array> {
    for (let isLast = false; !isLast; ) {
      await this.#wake.promise;
      // What arrives in the same tick is answered together.
      await nextTick();
      await this.#rpc.turn();
      this.#wake = Promise.withResolvers();
      isLast = await this.#process();
      const frames = this.#answers.take();
      if (frames.length > 0) yield frames;
    }
    if (this.#error !== undefined) throw this.#error;
    if (this.#requests.size > 0) throw toConnectError(malformed());
  }

  /** Returns the number of verifications by verdict, for the log line. */
  get counts(): string {
    return Array.from(this.#counts, ([verdict, count]) => `${verdict}=${count}`).join(",");
  }

  /**
   * Verifies what was received, and returns whether the stream ends. The caller is authorized here, in the same tick in which these answers
   * and those of earlier requests are written. Throws if it is rejected.
   */
  async #process(): Promise<boolean> {
    const admitted = this.#rpc.pipeline.admit(this.#call);
    const principal = admitted instanceof Promise ? await admitted : admitted;
    try {
      for (let count = 0; count < MAX_PER_TICK; count++) {
        if (this.#isFailed) return true;
        if (this.#waiting === MAX_UNANSWERED) return false;
        const message = this.#requests.next();
        if (message === undefined) return this.#onIdle();
        this.#verify(message, principal);
      }
    } catch (error) {
      this.#error ??= toConnectError(error);
      this.#isComplete = true;
      this.#requests.clear();
    }
    this.#wake.resolve();
    return false;
  }

  /** Every complete request that was received is verified, or waits. */
  #onIdle(): boolean {
    this.#room.resolve();
    this.#room = Promise.withResolvers();
    return this.#isComplete && this.#waiting === 0;
  }

  #verify(message: Uint8Array, principal: Principal): void {
    const { codec, pipeline } = this.#rpc;
    const { id, request } = readStreamRequest(message, codec, this.#call);
    try {
      const response = pipeline.invoke(request, principal, this.#verification);
      if (response instanceof Promise) void this.#await(id, response);
      else this.#answers.add(id, RESPONSE, codec.write(response));
    } catch (error) {
      this.#answers.add(id, ERROR, errorBytes(toConnectError(error)));
    }
  }

  async #await(id: number, response: Promise<Response>): Promise<void> {
    this.#waiting++;
    try {
      this.#answers.add(id, RESPONSE, this.#rpc.codec.write(await response));
    } catch (error) {
      this.#answers.add(id, ERROR, errorBytes(toConnectError(error)));
    }
    this.#waiting--;
    this.#wake.resolve();
  }
}

const errorBytes = memoize(({ code, rawMessage: message, details }: ConnectError): Uint8Array => {
  const packed = details.flatMap((detail) =>
    "desc" in detail ? [anyPack(detail.desc, create(detail.desc, detail.value))] : [],
  );
  return toBinary(StreamVerifyErrorSchema, create(StreamVerifyErrorSchema, { code, message, details: packed }));
});

/** Returns the call that the verifications of a stream see, which share a log line: it counts their verdicts. */
function countingCall(call: FastifyCall, counts: Map<string, number>): Call {
  const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  return {
    id: call.id,
    header: (name) => call.header(name),
    setHeader() {},
    setTrailer() {},
    peerAddress: call.peerAddress,
    get isAbandoned() {
      return call.isAbandoned;
    },
    log: {
      add({ verdict, code }) {
        const name = verdict ?? code;
        if (name !== undefined) count(name);
      },
      // The line of a stream is always written.
      accepted() {},
      note: (message, fields) => call.note(message, fields),
      fault: (error) => call.fault(error),
      outage: (cause) => call.outage(cause),
      onEnd() {},
    },
  };
}
