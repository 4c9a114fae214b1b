import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";

/** Returns a request header by its lower-case name. */
type ReadHeader = (name: string) => string | undefined;

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

export type RpcSpan = ReturnType<Tracing["begin"]>;

const PROPAGATOR = new W3CTraceContextPropagator();
const GETTER = { get: (header: ReadHeader, name: string) => header(name), keys: () => [] };

/** Creates spans of RPCs and their statements and records cache hits. Registers nothing globally, so libraries add no spans. */
export type Tracing = ReturnType<typeof createTracing>;

/** `shutdown` flushes pending spans. */
function createTracing(tracer: Tracer, shutdown: () => Promise<void>) {
  const current = new AsyncLocalStorage<Context>();
  return {
    /** Starts the span of a call in the trace of its caller (W3C Trace Context). `rpc` is `package.Service/Method`. */
    begin: (rpc: string, header: ReadHeader) => {
      const parent = PROPAGATOR.extract(ROOT_CONTEXT, header, GETTER);
      const span = tracer.startSpan(rpc, { kind: SpanKind.SERVER, attributes: { "rpc.method": rpc } }, parent);
      const context = trace.setSpan(parent, span);
      return {
        /** 32 hexadecimal digits, for the access log. */
        traceId: span.spanContext().traceId,
        /** Runs `work` in the context of the span, so that spans started there are its children. */
        run: <T>(work: () => T): T => current.run(context, work),
        /** Ends the span. `code` is the name of a gRPC code. */
        end: (code: string, protocol: string): void => {
          const system = SYSTEMS[protocol] ?? protocol;
          span.setAttributes({ "rpc.system.name": system, "rpc.response.status_code": code });
          if (FAULTS.has(code)) span.setAttribute("error.type", code).setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    /**
     * Runs a statement in a span within that of its call. A batched statement is within the call that came first; without a call there is
     * no span. The span has neither the text and parameters nor the error message, which may quote them.
     */
    statement: async <T>(name: string, work: () => Promise<T>): Promise<T> => {
      const parent = current.getStore();
      if (parent === undefined) return work();
      const attributes = { "db.system.name": "postgresql", "db.query.summary": name };
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, parent);
      try {
        return await work();
      } catch (error) {
        span.setAttribute("error.type", typeOf(error)).setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
    /** Records on the span of the current call whether the key was cached. */
    lookup: (isHit: boolean): void => {
      const context = current.getStore();
      if (context !== undefined) trace.getSpan(context)?.setAttribute("keyhold.cache.hit", isHit);
    },
    close: shutdown,
  };
}

function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return "_OTHER";
  return "code" in error ? String(error.code) : error.name;
}

/** Which calls are traced: a ratio of new traces and, if `parentBased`, calls whose caller is sampled. */
export interface Sampling {
  readonly ratio: number;
  readonly parentBased: boolean;
}

/**
 * Starts OpenTelemetry. Its packages read the exporter's endpoint and headers and the service name from the standard variables
 * (OTEL_EXPORTER_OTLP_…, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES).
 */
export function startTracing({ ratio, parentBased }: Sampling, version: string): Tracing {
  const root = new TraceIdRatioBasedSampler(ratio);
  const named = resourceFromAttributes({ "service.name": "keyhold", "service.version": version });
  const provider = new TracerProvider({
    sampler: parentBased ? new ParentBasedSampler({ root }) : root,
    resource: defaultResource()
      .merge(named)
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  return createTracing(provider.getTracer("keyhold", version), () => provider.shutdown());
}
