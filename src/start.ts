import type { FastifyBaseLogger } from "fastify";
import { announce } from "./announce.ts";
import type { Config } from "./config.ts";
import { type EmbeddedStart, type Foundation, openFoundation } from "./foundation.ts";
import type { ServeOptions, Service } from "./service.ts";

/** Opens everything that the configuration asks for and serves it. */
export async function startService(
  config: Config,
  logger: FastifyBaseLogger,
  options: ServeOptions = {},
): Promise<Service> {
  const launched = Promise.withResolvers<void>();
  const opening = openForServing(config, logger, { onLaunched: launched.resolve });
  // The protocols and their libraries are two thirds of the program: they are read while PostgreSQL starts.
  await Promise.race([launched.promise, opening]);
  const { serve } = await import("./service.ts");
  const service = await serve(config, await opening, logger, options);
  // Of several processes on a port, their parent tells.
  if (options.workers === undefined) announce(config, service.url, logger);
  return service;
}

/** The foundation of a server, whose database no other server may have started. `embedded` is for the embedded one. */
export async function openForServing(
  config: Config,
  logger: FastifyBaseLogger,
  embedded: Pick<EmbeddedStart, "onLaunched" | "settings">,
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
