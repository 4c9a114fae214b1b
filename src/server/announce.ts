import type { FastifyBaseLogger } from "fastify";
import type { Config } from "./config/config.ts";

/** Tells people, and the scripts that wait for it, that all is ready: the first line of the log with `url`. `metrics` is where those are. */
export function announce(
  { auth }: Pick<Config, "auth">,
  url: string,
  logger: FastifyBaseLogger,
  metrics: string | undefined,
): void {
  logger.info({ url, metrics, auth }, `Keyhold is listening on ${url}`);
  if (auth.length === 0) {
    logger.warn(
      "KEYHOLD_AUTH is not set: everyone on this machine may do everything, and no other machine can connect",
    );
  } else if (auth.includes("none")) {
    logger.warn("KEYHOLD_AUTH has none: everyone who reaches this address may do everything");
  }
}
