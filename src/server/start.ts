import type { FastifyBaseLogger } from "fastify";
import type { MetricsPort } from "../observability/metrics/port.ts";
import { isOurs } from "../postgres/connection/server-log.ts";
import type { Config } from "./config/config.ts";
import { dangersOf } from "./config/dangers.ts";
import { cannotListen, requireFree } from "./listening.ts";
import { openResources, type Resources, type ResourcesOptions } from "./resources.ts";
import type { ServeOptions, Service } from "./service.ts";
import { readVersion } from "./version.ts";

export async function startService(
  config: Config,
  logger: FastifyBaseLogger,
  options: ServeOptions = {},
): Promise<Service> {
  // With workers, the primary process announces the port and serves the metrics.
  if (options.workers !== undefined) return openService(config, logger, options);
  return withMetricsPort(config, logger, async (port) => {
    const service = await openService(config, logger, options);
    port?.serve(service.metrics.text);
    announce(config, service, logger, port?.url);
    const close = async () => {
      await service.close();
      await port?.close();
    };
    return { ...service, close };
  });
}

/**
 * Runs work with the port for metrics, or null if none is configured. All ports are checked first, so that one in use is reported before
 * the database is started; that of the service comes first, since a second server would find both in use.
 */
export async function withMetricsPort<T>(
  config: Config,
  logger: FastifyBaseLogger,
  work: (port: MetricsPort | null) => Promise<T>,
): Promise<T> {
  const { metrics, allowedHosts, gateways } = config;
  await requireFree("KEYHOLD", config);
  if (gateways.address !== null) await requireFree("KEYHOLD_GATEWAY", gateways.address);
  if (metrics === null) return work(null);
  const { openMetricsPort } = await import("../observability/metrics/port.ts");
  const port = await openMetricsPort(metrics, allowedHosts, (err) =>
    logger.warn({ err }, "the metrics could not be collected"),
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
  // OpenTelemetry is loaded only if it is configured.
  const tracing =
    config.tracing === null
      ? undefined
      : (await import("../observability/tracing.ts")).startTracing(config.tracing, readVersion());
  const launched = Promise.withResolvers<void>();
  const opening = openForServing(config, logger, { onLaunched: launched.resolve, tracing });
  // The protocols and their libraries are two thirds of the program, so they are loaded while PostgreSQL starts.
  await Promise.race([launched.promise, opening]);
  const { serve } = await import("./service.ts");
  return serve(config, await opening, logger, { ...options, tracing });
}

/** Opens the resources of a server. An embedded database must not be in use by another server. */
export async function openForServing(
  config: Config,
  logger: FastifyBaseLogger,
  embedded: Pick<ResourcesOptions, "onLaunched" | "settings" | "tracing">,
): Promise<Resources> {
  const resources = await openResources(config, {
    ...embedded,
    log: databaseLog(logger),
    ifRunning: "reject",
    onMembership: (level, message, err) => logger[level]({ err }, message),
    onDuplicates: (keyIds) =>
      logger.warn({ key_ids: keyIds }, "several keys have the same raw key: keep one of them, and delete the others"),
    onUnusableScheme: (schemeId, err) =>
      logger.warn(
        { err, hash_scheme_id: schemeId },
        "keys stored only as a hash in this hash format are rejected: its prefix, suffix or HMAC key cannot be unwrapped; configure its root secret as retired",
      ),
  });
  if (resources.migrated.length > 0) logger.info({ migrations: resources.migrated }, "database schema migrated");
  return resources;
}

/** Writes the log of PostgreSQL to ours: ordinary lines as `debug`, except those that our commands wrote. */
function databaseLog(logger: FastifyBaseLogger) {
  const log = logger.child({ from: "postgres" });
  return (level: "info" | "warn" | "error", message: string) =>
    log[level === "info" && !isOurs(message) ? "debug" : level](message);
}

/** Logs that the server is ready; scripts wait for this first line with `url`. `metrics` is the URL of the metrics. */
export function announce(
  config: Config,
  { url, gatewayUrl }: Pick<Service, "url" | "gatewayUrl">,
  logger: FastifyBaseLogger,
  metrics: string | undefined,
): void {
  logger.info({ url, gateways: gatewayUrl, metrics, auth: config.auth }, `Keyhold is listening on ${url}`);
  for (const { message, remedy } of dangersOf(config)) logger.warn(`${message}: ${remedy}`);
}
