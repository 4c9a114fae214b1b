import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { Tracing } from "./tracing.ts";

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
  return new Tracing(provider.getTracer("keyhold", version), () => provider.shutdown());
}
