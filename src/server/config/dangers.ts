import type { Config } from "./config.ts";
import { isLoopback } from "./config.ts";

/** A combination of settings that is allowed and dangerous. The log at start and `keyhold doctor` report the same ones. */
export interface Danger {
  /** The check of the doctor that reports it. */
  readonly check: "access" | "gateways";
  readonly message: string;
  readonly remedy: string;
}

/** Milliseconds. A revocation is delayed by the grace in an outage. */
const LARGE_GRACE = 300_000;

type Rule = (config: Config) => Danger | false;

/** Rules in the order in which they are reported. */
const RULES: readonly Rule[] = [
  ({ auth }) =>
    (auth.length === 0 || auth.includes("none")) && {
      check: "access",
      message: `${auth.length === 0 ? "every program on this machine" : "everyone who can reach the port"} has full access`,
      remedy: "set KEYHOLD_AUTH=admin-token and run keyhold admin token create",
    },
  ({ host, tls }) =>
    tls === null &&
    !isLoopback(host) && {
      check: "access",
      message: `${host} is served without TLS`,
      remedy: "set KEYHOLD_TLS_CERT_FILE, or terminate TLS at a proxy",
    },
  ({ gateways: { address }, tls }) =>
    address !== null &&
    tls === null &&
    !isLoopback(address.host) && {
      check: "gateways",
      message: `${address.host} is served to gateways without TLS`,
      remedy: "set KEYHOLD_TLS_CERT_FILE, or keep KEYHOLD_GATEWAY_HOST in a network of its own",
    },
  ({ metrics }) =>
    metrics !== null &&
    !isLoopback(metrics.host) && {
      check: "access",
      message: `the metrics on ${metrics.host} require no credential`,
      remedy: "restrict access to KEYHOLD_METRICS_PORT in the network, or remove KEYHOLD_METRICS_HOST",
    },
  ({ staleGrace }) =>
    staleGrace > LARGE_GRACE && {
      check: "access",
      message: `while the database is unreachable, a revoked key is accepted for up to ${staleGrace / 1000} s`,
      remedy: `set KEYHOLD_STALE_GRACE to at most ${LARGE_GRACE / 1000}s`,
    },
  ({ auth, gateways: { protocols, callers } }) =>
    protocols.length > 0 &&
    auth.includes("none") &&
    callers.includes("token") && {
      check: "gateways",
      message: "gateways need no token: KEYHOLD_AUTH has none",
      remedy: "remove none from KEYHOLD_AUTH, or set KEYHOLD_GATEWAY_CALLERS to network or mtls",
    },
  ({ gateways: { protocols, credentials } }) =>
    protocols.length > 0 &&
    credentials.some(({ kind }) => kind === "query") && {
      check: "gateways",
      message: "credentials in the query of a URL are accepted, which proxies and browsers store",
      remedy: "remove query: from KEYHOLD_GATEWAY_CREDENTIALS",
    },
];

/** Returns the dangers of a configuration. */
export function dangersOf(config: Config): readonly Danger[] {
  return RULES.flatMap((rule) => rule(config) || []);
}
