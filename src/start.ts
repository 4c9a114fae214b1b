import type { FastifyBaseLogger } from "fastify";
import type { Config } from "./config.ts";
import { openFoundation } from "./foundation.ts";
import type { Service } from "./service.ts";

/** Opens everything that the configuration asks for and serves it. */
export async function startService(config: Config, logger: FastifyBaseLogger): Promise<Service> {
  const launched = Promise.withResolvers<void>();
  const opening = openFoundation(config, {
    log: databaseLog(logger),
    ifRunning: "refuse",
    onLaunched: launched.resolve,
    onMembership: (message, err) => logger.warn({ err }, message),
  });
  // The protocols and their libraries are two thirds of the program: they are read while PostgreSQL starts.
  await Promise.race([launched.promise, opening]);
  const { serve } = await import("./service.ts");
  const foundation = await opening;
  if (foundation.migrated.length > 0) logger.info({ migrations: foundation.migrated }, "schema brought up to date");
  return serve(config, foundation, logger);
}

/** PostgreSQL's own lines: what is ordinary to it is detail to us. */
function databaseLog(logger: FastifyBaseLogger) {
  const log = logger.child({ from: "postgres" });
  return (level: "info" | "warn" | "error", message: string) => log[level === "info" ? "debug" : level](message);
}
