import type { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type Span, SpanStatusCode } from "@opentelemetry/api";

/** Codes of server faults (OpenTelemetry semantic conventions, "gRPC", span status). */
const FAULTS: ReadonlySet<string> = new Set([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
]);

/** Values of `rpc.system.name`. The conventions have none for REST. */
const SYSTEMS: Readonly<Record<string, string>> = {
  connect: "connectrpc",
  grpc: "grpc",
  grpc_web: "grpc",
  rest: "rest",
};

/** The span of one RPC. */
export class RpcSpan {
  readonly #span: Span;
  readonly #current: AsyncLocalStorage<Context>;
  readonly #context: Context;

  constructor(span: Span, current: AsyncLocalStorage<Context>, context: Context) {
    this.#span = span;
    this.#current = current;
    this.#context = context;
  }

  /** 32 hexadecimal digits, for the access log. */
  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  /** Runs `work` in the context of the span, so that spans started there are its children. */
  run<T>(work: () => T): T {
    return this.#current.run(this.#context, work);
  }

  /** Ends the span. `code` is the name of a gRPC code. */
  end(code: string, protocol: string): void {
    const system = SYSTEMS[protocol] ?? protocol;
    this.#span.setAttributes({ "rpc.system.name": system, "rpc.response.status_code": code });
    if (FAULTS.has(code)) this.#span.setAttribute("error.type", code).setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
  }
}
