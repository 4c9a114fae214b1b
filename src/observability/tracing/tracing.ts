import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { type RpcSpan, SpanOfRpc } from "./rpc-span.ts";

/** Reads a header of the caller by its lower-case name. */
type ReadHeader = (name: string) => string | undefined;

const PROPAGATOR = new W3CTraceContextPropagator();
const GETTER = { get: (header: ReadHeader, name: string) => header(name), keys: () => [] };

/** Spans of RPCs, of statements within them, and what the cache knew. Nothing global: no library of others is traced by it. */
export class Tracing {
  readonly #tracer: Tracer;
  readonly #shutdown: () => Promise<void>;
  readonly #current = new AsyncLocalStorage<Context>();

  /** `shutdown` sends what has not been sent. */
  constructor(tracer: Tracer, shutdown: () => Promise<void>) {
    this.#tracer = tracer;
    this.#shutdown = shutdown;
  }

  /** The span of a call, within the trace of its caller (W3C Trace Context). `rpc` is `package.Service/Method`. */
  begin(rpc: string, header: ReadHeader): RpcSpan {
    const parent = PROPAGATOR.extract(ROOT_CONTEXT, header, GETTER);
    const span = this.#tracer.startSpan(rpc, { kind: SpanKind.SERVER, attributes: { "rpc.method": rpc } }, parent);
    return new SpanOfRpc(span, this.#current, trace.setSpan(parent, span));
  }

  /**
   * The span of a statement, within that of the call that has it sent. Statements that serve many calls are within the one that came
   * first; those of none have no span. Neither text nor parameters are told, nor the message of an error, which may quote them.
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

  /** Whether a key was in the cache, on the span of the call that asked for it. */
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
