import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import type { Call, CallLog, EndListener } from "../../api/rpc.ts";
import { type CallCounter, type CallCounters, OK, outcome, type Protocol } from "../calls.ts";
import { requestIdOf } from "../request-id.ts";
import type { WriteLine } from "../request-line.ts";
import type { Exchange, Fields } from "./exchange.ts";

/** What calls of one RPC over one protocol share. */
export interface CallKind {
  readonly protocol: Protocol;
  /** Counts them. */
  readonly counter: CallCounter;
}

/** What all calls share. */
export interface CallContext {
  readonly logger: FastifyBaseLogger;
  readonly writeLine: WriteLine;
  readonly counters: CallCounters;
  /** Of every response. */
  readonly headers: Fields;
}

/** A call in the lane, with its line in the log. */
export class LaneCall implements Call, CallLog {
  readonly exchange: Exchange;
  readonly method: string;
  readonly #context: CallContext;
  readonly #kind: CallKind;
  readonly #id: string;
  readonly #begin = performance.now();
  /** Those that are the same for many calls. */
  readonly #shared: Readonly<Record<string, string>>[] = [];
  readonly #facts: Record<string, string> = {};
  #code = OK;
  #onEnd: EndListener | undefined;
  #headers: Map<string, string> | undefined;
  #controller: AbortController | undefined;

  constructor(exchange: Exchange, kind: CallKind, method: string, context: CallContext) {
    this.exchange = exchange;
    this.method = method;
    this.#context = context;
    this.#kind = kind;
    this.#id = requestIdOf(exchange.header("x-request-id"));
    context.counters.begin();
  }

  header(name: string): string | undefined {
    return this.exchange.header(name);
  }

  setHeader(name: string, value: string): void {
    this.#headers ??= new Map();
    this.#headers.set(name.toLowerCase(), value);
  }

  /** A header that the RPC has set. */
  headerSet(name: string): string | undefined {
    return this.#headers?.get(name);
  }

  /** The response headers that are not of the protocol. */
  responseHeaders(): Fields {
    const fields = ["x-request-id", this.#id, ...this.#context.headers];
    if (this.#headers !== undefined) for (const [name, value] of this.#headers) fields.push(name, value);
    return fields;
  }

  /** Made when first asked for, since few RPCs do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.exchange.onGone(() => this.abort(new ConnectError("the caller went away", Code.Canceled)));
    }
    return this.#controller.signal;
  }

  /** With a reason: without one, making the usual error costs more than all else of the call. */
  abort(reason: Error): void {
    this.#controller?.abort(reason);
  }

  get log(): CallLog {
    return this;
  }

  add(facts: Readonly<Record<string, string>>): void {
    if (Object.isFrozen(facts)) this.#shared.push(facts);
    else this.#addOwn(facts);
  }

  #addOwn({ code, ...facts }: Readonly<Record<string, string>>): void {
    if (code !== undefined) this.#code = code;
    Object.assign(this.#facts, facts);
  }

  fault(error: unknown): void {
    const failed = this.#code === OK ? {} : { code: this.#code };
    const facts = Object.assign({ protocol: this.#kind.protocol }, ...this.#shared, this.#facts, failed);
    this.#context.logger.error({ reqId: this.#id, err: error, ...facts }, "fault");
  }

  onEnd(listener: EndListener): void {
    this.#onEnd = listener;
  }

  /** Milliseconds since the request came. */
  elapsed(): number {
    return performance.now() - this.#begin;
  }

  /** Counts the call and writes its line. */
  finish(status: number): void {
    const { counter, protocol } = this.#kind;
    const code = this.#code;
    const elapsed = this.elapsed();
    counter.end(code, elapsed);
    this.#onEnd?.(code, protocol);
    const duration = Math.round(elapsed * 10) / 10;
    const request = { reqId: this.#id, method: this.method, status };
    this.#context.writeLine([
      request,
      ...this.#shared,
      this.#facts,
      outcome(protocol, code),
      { duration_ms: duration },
    ]);
  }
}
