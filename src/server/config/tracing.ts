import { invalidArgument } from "../../domain/errors.ts";
import type { Sampling } from "../../observability/tracing.ts";
import { type Get, oneOf } from "./values.ts";

/** Enabled when a collector or an exporter is configured (OpenTelemetry specification, "Environment Variable Specification"). */
export function toTracing(get: Get): Sampling | null {
  const exporter = oneOf("OTEL_TRACES_EXPORTER", get("OTEL_TRACES_EXPORTER") ?? "otlp", ["otlp", "none"]);
  const isNamed = TRACING_VARIABLES.some((name) => get(name) !== undefined);
  if (!isNamed || exporter === "none" || get("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return null;
  for (const name of ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"]) {
    oneOf(name, get(name) ?? "http/protobuf", ["http/protobuf"]);
  }
  return toSampling(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG"));
}

const SAMPLERS = ["always_on", "always_off", "traceidratio"] as const;

function toSampling(text = "parentbased_always_on", ratio = "1"): Sampling {
  const prefix = "parentbased_";
  const names = SAMPLERS.flatMap((name) => [name, `${prefix}${name}`]);
  const sampler = oneOf("OTEL_TRACES_SAMPLER", text, names);
  const parentBased = sampler.startsWith(prefix);
  if (sampler.endsWith("always_on")) return { parentBased, ratio: 1 };
  if (sampler.endsWith("always_off")) return { parentBased, ratio: 0 };
  const value = Number(ratio);
  if (value >= 0 && value <= 1) return { parentBased, ratio: value };
  throw invalidArgument("OTEL_TRACES_SAMPLER_ARG", "must be a number from 0 to 1");
}

const TRACING_VARIABLES = ["OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
