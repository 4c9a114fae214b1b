import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { RpcSpan } from "./rpc-span.ts";

/** Returns a request header by its lower-case name. */
type ReadHeader = (name: string) => string | undefined;

const PROPAGATOR = new W3CTraceContextPropagator();
const GETTER = { get: (header: ReadHeader, name: string) => header(name), keys: () => [] };

/** Creates spans of RPCs and their statements and records cache hits. Registers nothing globally, so libraries add no spans. */
export class Tracing {
  readonly #tracer: Tracer;
  readonly #shutdown: () => Promise<void>;
  readonly #current = new AsyncLocalStorage<Context>();

  /** `shutdown` flushes pending spans. */
  constructor(tracer: Tracer, shutdown: () => Promise<void>) {
    this.#tracer = tracer;
    this.#shutdown = shutdown;
  }

  /** Starts the span of a call in the trace of its caller (W3C Trace Context). `rpc` is `package.Service/Method`. */
  begin(rpc: string, header: ReadHeader): RpcSpan {
    const parent = PROPAGATOR.extract(ROOT_CONTEXT, header, GETTER);
    const span = this.#tracer.startSpan(rpc, { kind: SpanKind.SERVER, attributes: { "rpc.method": rpc } }, parent);
    return new RpcSpan(span, this.#current, trace.setSpan(parent, span));
  }

  /**
   * Runs a statement in a span within that of its call. A batched statement is within the call that came first; without a call there is no
   * span. The span has neither the text and parameters nor the error message, which may quote them.
   */
  readonly statement = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const parent = this.#current.getStore();
    if (parent === undefined) return work();
    const attributes = { "db.system.name": "postgresql", "db.query.summary": name };
    const span = this.#tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, parent);
    try {
      return await work();
    } catch (error) {
      span.setAttribute("error.type", typeOf(error)).setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  };

  /** Records on the span of the current call whether the key was cached. */
  readonly lookup = (isHit: boolean): void => {
    const context = this.#current.getStore();
    if (context !== undefined) trace.getSpan(context)?.setAttribute("keyhold.cache.hit", isHit);
  };

  close(): Promise<void> {
    return this.#shutdown();
  }
}

function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return "_OTHER";
  return "code" in error ? String(error.code) : error.name;
}
