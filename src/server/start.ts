import type { FastifyBaseLogger } from "fastify";
import type { MetricsPort } from "../observability/metrics/port.ts";
import type { Tracing } from "../observability/tracing/tracing.ts";
import { isOurs } from "../postgres/server-log.ts";
import { announce } from "./announce.ts";
import type { Config } from "./config/config.ts";
import { cannotListen, listenFailure } from "./listening.ts";
import { openResources, type Resources, type ResourcesOptions } from "./resources.ts";
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

/**
 * Runs work with the port for metrics, or null without one. It is opened first, and the port of the service is tried before it: a port
 * in use is reported before the database is started, and a second server is told of the port of the service and not of the next one.
 */
export async function withMetricsPort<T>(
  { metrics, allowedHosts, ...service }: Pick<Config, "host" | "port" | "metrics" | "allowedHosts">,
  logger: FastifyBaseLogger,
  work: (port: MetricsPort | null) => Promise<T>,
): Promise<T> {
  const failure = await listenFailure(service);
  if (failure !== null) throw cannotListen("KEYHOLD", service, failure);
  if (metrics === null) return work(null);
  const { openMetricsPort } = await import("../observability/metrics/port.ts");
  const port = await openMetricsPort(metrics, allowedHosts, (err) =>
    logger.warn({ err }, "the metrics could not be read"),
  ).catch((error) => {
    throw cannotListen("KEYHOLD_METRICS", metrics, error);
  });
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
  const { startTracing } = await import("../observability/tracing/start.ts");
  return startTracing(tracing, readVersion());
}

/** The resources of a server, whose database no other server may have started. `embedded` is for the embedded one. */
export async function openForServing(
  config: Config,
  logger: FastifyBaseLogger,
  embedded: Pick<ResourcesOptions, "onLaunched" | "settings" | "tracing">,
): Promise<Resources> {
  const resources = await openResources(config, {
    ...embedded,
    log: databaseLog(logger),
    ifRunning: "refuse",
    onMembership: (level, message, err) => logger[level]({ err }, message),
    onDuplicates: (keyIds) =>
      logger.warn(
        { key_ids: keyIds },
        "one raw key is stored as several keys: keep one, and delete or revoke the others",
      ),
  });
  if (resources.migrated.length > 0) logger.info({ migrations: resources.migrated }, "schema brought up to date");
  return resources;
}

/** PostgreSQL's own lines: what is ordinary to it is detail to us, but for what commands have written there. */
function databaseLog(logger: FastifyBaseLogger) {
  const log = logger.child({ from: "postgres" });
  return (level: "info" | "warn" | "error", message: string) =>
    log[level === "info" && !isOurs(message) ? "debug" : level](message);
}
