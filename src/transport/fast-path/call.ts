import { Code, type ConnectError } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import type { Call, CallLog, EndListener, Pipeline } from "../../api/rpc.ts";
import type { Principal } from "../../domain/principal.ts";
import type { CallCounter, CallCounters, LogFields, WriteEntry } from "../pipeline/access-log.ts";
import type { OutageLog } from "../pipeline/outage-log.ts";
import { type Deadline, MAX_TIMER, timedOut } from "../wire/deadline.ts";
import { type Headers, headerOf, requestIdOf, valuesOf } from "../wire/headers.ts";
import { HttpError } from "../wire/http-error.ts";
import { CLIENT_CLOSED_REQUEST, codeName, OK, type Protocol, toLoggedError } from "../wire/protocol.ts";
import type { BodyBudget } from "../wire/request-body.ts";

/** Header names and values in turn: Node writes them without looking each one up. */
export type HeaderList = string[];

export interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string | Uint8Array;
  /** HTTP/2 only. */
  readonly trailers?: Readonly<Record<string, string>>;
}

/** An RPC, or an endpoint that is no RPC, in a protocol and encoding. */
export interface FastRoute<Req = unknown, Res = unknown> {
  readonly rpc: Pipeline<Req, Res>;
  readonly name: string;
  readonly protocol: Protocol;
  readonly counter: CallCounter;
  readonly maxBodyBytes: number;
  /** The deadline of the call, if the protocol has deadlines. */
  readonly deadline?: Deadline;
  /** Throws an error for `reject`. */
  decode(bytes: Uint8Array, call: FastCall): Req;
  answer(call: FastCall, response: Res): Answer;
  reject(call: FastCall, error: ConnectError): Answer;
}

export interface CallContext {
  readonly logger: FastifyBaseLogger;
  readonly outages: OutageLog;
  readonly writeEntry: WriteEntry;
  readonly counters: CallCounters;
  readonly budget: BodyBudget;
  /** Runs a call whose body is complete, now or in a later tick. */
  readonly start: (call: FastCall) => void;
}

const EMPTY = new Uint8Array();

/**
 * One call on the fast path: the `Call` that the RPC sees, its log line, and its steps from the complete body to the response. A call that
 * has its result in memory is answered in the same tick of the event loop. Steps are methods: closures would cost more than the steps.
 */
export abstract class FastCall implements Call, CallLog {
  readonly route: FastRoute;
  readonly method: string;
  /** In origin form; empty over HTTP/2, where no route needs it. */
  readonly target: string;
  /** Trailing metadata that the RPC has set. */
  trailers: Record<string, string> | undefined;
  readonly requestHeaders: Headers;
  protected readonly context: CallContext;
  readonly id: string;
  readonly #begin = performance.now();
  protected body: Uint8Array = EMPTY;
  /** Whether the body exceeded the limit. The caller still learns first whether it may call at all. */
  protected isTooLarge = false;
  protected isOver = false;
  /** Whether the RPC has received the call, and added its name to the log line. */
  #isBegun = false;
  #code = OK;
  #isAccepted = false;
  readonly #fields: LogFields[] = [];
  #onEnd: EndListener | undefined;
  #headers: Map<string, string> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(route: FastRoute, context: CallContext, headers: Headers, method: string, target: string) {
    this.route = route;
    this.method = method;
    this.target = target;
    this.context = context;
    this.requestHeaders = headers;
    this.id = requestIdOf(headers["x-request-id"]);
    context.counters.begin();
  }

  header(name: string): string | undefined {
    return headerOf(this.requestHeaders, name);
  }

  fields(name: string): readonly string[] {
    return valuesOf(this.requestHeaders, name);
  }

  abstract get peerAddress(): string;
  abstract get certificateSubject(): string | undefined;

  get isAbandoned(): boolean {
    return this.isOver;
  }

  /** Sends the response; a no-op if the client has disconnected. If it throws, it has closed the stream or connection. */
  protected abstract respond(answer: Answer): void;

  /** Serves the call, whose body is complete. The caller is authorized here, in the same tick that the call is served in. */
  run(): void {
    if (this.isOver) return;
    this.#isBegun = true;
    try {
      const principal = this.route.rpc.admit(this);
      if (!(principal instanceof Promise)) this.#invoke(principal);
      else principal.then((admitted) => this.#invoke(admitted)).catch((error: unknown) => this.reject(error));
    } catch (error) {
      this.reject(error);
    }
  }

  #invoke(principal: Principal): void {
    if (this.isOver) return;
    if (this.isTooLarge) throw new HttpError("BODY_TOO_LARGE");
    const request = this.route.decode(this.body, this);
    this.body = EMPTY;
    const deadline = this.#deadline();
    if (deadline !== undefined && this.#elapsed() >= deadline) throw timedOut();
    const response = this.route.rpc.invoke(request, principal, this);
    if (response instanceof Promise) this.#await(response, deadline);
    else this.#answer(response);
  }

  /** Milliseconds from the start of the call. */
  #deadline(): number | undefined {
    const { deadline } = this.route;
    const value = deadline && this.header(deadline.header);
    return value === undefined ? undefined : deadline?.parse(value);
  }

  #await(response: Promise<unknown>, deadline: number | undefined): void {
    if (deadline !== undefined && deadline <= MAX_TIMER) {
      this.#timer = setTimeout(() => this.reject(timedOut()), deadline - this.#elapsed());
    }
    response.then((value) => this.#answer(value)).catch((error: unknown) => this.reject(error));
  }

  #answer(response: unknown): void {
    if (!this.isOver) this.#finish(this.#written(() => this.route.answer(this, response)));
  }

  reject(error: unknown): void {
    if (this.isOver) return;
    this.#finish(this.#written(() => this.#errorAnswer(error)));
  }

  #errorAnswer(cause: unknown): Answer {
    return this.route.reject(this, toLoggedError(cause, this));
  }

  #written(write: () => Answer): Answer {
    try {
      return write();
    } catch (cause) {
      this.fault(cause);
      return this.#errorAnswer(new Error("the response could not be encoded", { cause }));
    }
  }

  /** The client has disconnected, or has reset the stream. */
  cancel(): void {
    if (this.isOver) return;
    this.add({ code: codeName(Code.Canceled) });
    this.#end(CLIENT_CLOSED_REQUEST);
  }

  #finish(answer: Answer): void {
    try {
      this.respond(answer);
    } catch (error) {
      this.fault(error);
    }
    this.#end(answer.status);
  }

  #end(status: number): void {
    this.isOver = true;
    this.body = EMPTY;
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    const { counter, protocol, name } = this.route;
    if (!this.#isBegun) this.#fields.push({ rpc: name });
    const [code, elapsed] = [this.#code, this.#elapsed()];
    counter.end(code, elapsed);
    this.#onEnd?.(code, protocol);
    const { id: reqId, method } = this;
    const [fields, isAccepted] = [this.#fields, this.#isAccepted];
    this.context.writeEntry({ reqId, method, status, fields, protocol, code, elapsed, isAccepted });
  }

  #elapsed(): number {
    return performance.now() - this.#begin;
  }

  setHeader(name: string, value: string): void {
    this.#headers ??= new Map();
    this.#headers.set(name.toLowerCase(), value);
  }

  setTrailer(name: string, value: string): void {
    this.trailers = { ...this.trailers, [name.toLowerCase()]: value };
  }

  /** Returns the response headers: those that were set, and those of `defaults` that were not. */
  responseHeaders(defaults: Readonly<Record<string, string>> = {}): HeaderList {
    const fields = ["x-request-id", this.id];
    for (const name in defaults) if (!this.#headers?.has(name)) fields.push(name, defaults[name] ?? "");
    if (this.#headers !== undefined) for (const [name, value] of this.#headers) fields.push(name, value);
    return fields;
  }

  get log(): CallLog {
    return this;
  }

  add(fields: Readonly<Record<string, string>>): void {
    if (fields.code === undefined) this.#fields.push(fields);
    else {
      const { code, ...rest } = fields;
      this.#code = code;
      this.#fields.push(rest);
    }
  }

  accepted(): void {
    this.#isAccepted = true;
  }

  note(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.context.logger.info({ ...this.#fieldsSoFar(), ...fields }, message);
  }

  fault(error: unknown): void {
    this.context.logger.error({ err: error, ...this.#fieldsSoFar() }, "fault");
  }

  outage(cause: unknown): void {
    this.context.outages.add(cause, () => this.#fieldsSoFar());
  }

  #fieldsSoFar(): object {
    const failed = this.#code === OK ? {} : { code: this.#code };
    return Object.assign({ reqId: this.id, protocol: this.route.protocol }, ...this.#fields, failed);
  }

  onEnd(listener: EndListener): void {
    this.#onEnd = listener;
  }
}
