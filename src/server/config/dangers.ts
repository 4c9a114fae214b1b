import type { Config } from "./config.ts";
import { isLoopback } from "./config.ts";

/** A combination of settings that is allowed and dangerous. The log at start and `keyhold doctor` report the same ones. */
export interface Danger {
  /** The check of the doctor that reports it. */
  readonly check: "access" | "gateways";
  readonly message: string;
  readonly remedy: string;
}

/** In milliseconds: in an outage, the grace delays a revocation. */
const LARGE_GRACE = 300_000;

/** Returns the dangers of a configuration, in the order in which they are reported. */
export function dangersOf(config: Config): readonly Danger[] {
  const { auth, host, tls, metrics, staleGrace } = config;
  const { address, protocols, callers, credentials } = config.gateways;
  const dangers: Danger[] = [];
  const add = (message: string, remedy: string, check: Danger["check"] = "access") =>
    void dangers.push({ check, message, remedy });
  if (auth.length === 0 || auth.includes("none"))
    add(
      `${auth.length === 0 ? "every program on this machine" : "everyone who can reach the port"} has full access`,
      "set KEYHOLD_AUTH=admin-token and run `keyhold admin token create`",
    );
  if (tls === null && !isLoopback(host))
    add(`${host} is served without TLS`, "set KEYHOLD_TLS_CERT_FILE, or terminate TLS at a proxy");
  if (address !== null && tls === null && !isLoopback(address.host))
    add(
      `${address.host} is served to gateways without TLS`,
      "set KEYHOLD_TLS_CERT_FILE, or keep KEYHOLD_GATEWAY_HOST on an isolated network",
      "gateways",
    );
  if (metrics !== null && !isLoopback(metrics.host))
    add(
      `the metrics on ${metrics.host} require no credential`,
      "restrict network access to KEYHOLD_METRICS_PORT, or unset KEYHOLD_METRICS_HOST",
    );
  if (staleGrace > LARGE_GRACE)
    add(
      `while the database is unreachable, a revoked key is accepted for up to ${staleGrace / 1000} s`,
      `set KEYHOLD_STALE_GRACE to at most ${LARGE_GRACE / 1000}s`,
    );
  if (protocols.length > 0 && auth.includes("none") && callers.includes("token"))
    add(
      'gateways need no token, because KEYHOLD_AUTH contains "none"',
      'remove "none" from KEYHOLD_AUTH, or set KEYHOLD_GATEWAY_CALLERS to network or mtls',
      "gateways",
    );
  if (protocols.length > 0 && credentials.some(({ kind }) => kind === "query"))
    add(
      "credentials are accepted in the URL query string, which proxies log and browsers store",
      "remove the query:<name> entries from KEYHOLD_GATEWAY_CREDENTIALS",
      "gateways",
    );
  return dangers;
}
