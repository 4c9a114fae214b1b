import type { FastifyBaseLogger } from "fastify";
import { announce } from "./announce.ts";
import type { Config } from "./config.ts";
import { type Foundation, type FoundationOptions, openFoundation } from "./foundation.ts";
import type { MetricsPort } from "./observability/metrics/port.ts";
import type { Tracing } from "./observability/tracing/tracing.ts";
import type { ServeOptions, Service } from "./service.ts";
import { readVersion } from "./version.ts";

/** Opens everything that the configuration asks for and serves it. */
export async function startService(
  config: Config,
  logger: FastifyBaseLogger,
  options: ServeOptions = {},
): Promise<Service> {
  // Of several processes on a port, their parent tells, and is scraped.
  if (options.workers !== undefined) return openService(config, logger, options);
  return withMetricsPort(config, logger, async (port) => {
    const service = await openService(config, logger, options);
    port?.serve(service.metrics.text);
    announce(config, service.url, logger, port?.url);
    const close = async () => {
      await service.close();
      await port?.close();
    };
    return { ...service, close };
  });
}

/** Work with the port for metrics, if there is to be one. It is opened first, so that one in use is told at once. */
export async function withMetricsPort<T>(
  { metrics }: Pick<Config, "metrics">,
  logger: FastifyBaseLogger,
  work: (port: MetricsPort | null) => Promise<T>,
): Promise<T> {
  if (metrics === null) return work(null);
  const { openMetricsPort } = await import("./observability/metrics/port.ts");
  const port = await openMetricsPort(metrics, (err) => logger.warn({ err }, "the metrics could not be read"));
  try {
    return await work(port);
  } catch (error) {
    await port.close();
    throw error;
  }
}

async function openService(config: Config, logger: FastifyBaseLogger, options: ServeOptions): Promise<Service> {
  const tracing = await openTracing(config);
  const launched = Promise.withResolvers<void>();
  const opening = openForServing(config, logger, { onLaunched: launched.resolve, tracing });
  // The protocols and their libraries are two thirds of the program: they are read while PostgreSQL starts.
  await Promise.race([launched.promise, opening]);
  const { serve } = await import("./service.ts");
  return serve(config, await opening, logger, { ...options, tracing });
}

/** Loaded where it is asked for. */
async function openTracing({ tracing }: Config): Promise<Tracing | undefined> {
  if (tracing === null) return undefined;
  const { startTracing } = await import("./observability/tracing/start.ts");
  return startTracing(tracing, await readVersion());
}

/** The foundation of a server, whose database no other server may have started. `embedded` is for the embedded one. */
export async function openForServing(
  config: Config,
  logger: FastifyBaseLogger,
  embedded: Pick<FoundationOptions, "onLaunched" | "settings" | "tracing">,
): Promise<Foundation> {
  const foundation = await openFoundation(config, {
    ...embedded,
    log: databaseLog(logger),
    ifRunning: "refuse",
    onMembership: (message, err) => logger.warn({ err }, message),
  });
  if (foundation.migrated.length > 0) logger.info({ migrations: foundation.migrated }, "schema brought up to date");
  return foundation;
}

/** PostgreSQL's own lines: what is ordinary to it is detail to us. */
function databaseLog(logger: FastifyBaseLogger) {
  const log = logger.child({ from: "postgres" });
  return (level: "info" | "warn" | "error", message: string) => log[level === "info" ? "debug" : level](message);
}
