import { isLoopbackHost } from "../../../lib/host-names.ts";
import { UNCHECKED_TLS_MODES } from "../../../postgres/connection/connect.ts";
import { addressOf, parseConnectionUrl } from "../../../postgres/connection/connection-url.ts";
import { type HostReport, readHosts } from "../../../postgres/connection/hosts.ts";
import { type Check, error, type Finding, ok, warning } from "../finding.ts";

/** Checks TLS of connections to a database on another machine. */
export const checkDatabaseTls: Check = async ({ config }) =>
  [
    evaluateUrl("KEYHOLD_DATABASE_URL", config.databaseUrl),
    evaluateUrl("KEYHOLD_DATABASE_LISTEN_URL", config.databaseListenUrl),
    evaluateUrl("KEYHOLD_DATABASE_MIGRATE_URL", config.databaseMigrateUrl),
  ].flat();

export function evaluateUrl(name: string, text: string | null): Finding[] {
  if (text === null) return [];
  const { hosts, parameters } = parseConnectionUrl(text, name);
  const remote = hosts
    .filter((host) => !host.name.startsWith("/") && !isLoopbackHost(addressOf(host)))
    .map(({ name }) => name)
    .join(", ");
  if (remote.length === 0) return [];
  const isChecked = parameters.get("sslrootcert") === "system";
  const mode = parameters.get("sslmode") ?? parameters.get("ssl") ?? "disable";
  if (isChecked || mode.startsWith("verify-")) return [ok(`${name} verifies the certificate of ${remote}`)];
  const lack = UNCHECKED_TLS_MODES.includes(mode)
    ? `without verifying its certificate (sslmode=${mode})`
    : "without TLS";
  const message = `${name} connects to ${remote} ${lack}: traffic can be intercepted and modified`;
  return [warning(message, `add sslmode=verify-full to ${name}`)];
}

/** Timeout per host in milliseconds. */
const TIMEOUT = 3_000;

/** Checks each host of each URL: after a failover Keyhold finds the new primary only if the URL names it. */
export const checkHosts: Check = async ({ config }) => {
  const urls = [
    ["KEYHOLD_DATABASE_URL", config.databaseUrl],
    ["KEYHOLD_DATABASE_LISTEN_URL", config.databaseListenUrl],
  ] as const;
  const found = await Promise.all(
    urls.map(async ([name, url]) => (url === null ? [] : evaluateHosts(name, await readHosts(url, TIMEOUT)))),
  );
  return found.flat();
};

export function evaluateHosts(name: string, reports: readonly HostReport[]): Finding[] {
  const primaries = new Map(reports.flatMap(({ address, server }) => (server === null ? [] : [[server, address]])));
  const findings = reports.map((report) => evaluateHost(name, report, reports.length));
  if (primaries.size > 1) findings.push(splitBrain(name, [...primaries.values()]));
  const allStandby = reports.every(({ kind }) => kind === "standby");
  if (allStandby) findings.push(error(`${name} does not list a primary`, `add the primary to ${name}`));
  return findings;
}

function evaluateHost(name: string, { address, kind, failure }: HostReport, count: number): Finding {
  if (kind === "primary") return ok(`${name}: ${address} is the primary`);
  if (kind === "standby") return ok(`${name}: ${address} is a standby, not used until it is promoted`);
  const message = `${name}: ${address} ${failure}`;
  const remedy = "check that the database server is running and that the address, role and password are correct";
  return count === 1
    ? error(message, remedy)
    : warning(`${message}: it is not available for a failover`, `${remedy}, or remove it from ${name}`);
}

function splitBrain(name: string, addresses: readonly string[]): Finding {
  const message = `${name} lists ${addresses.length} servers that accept writes (${addresses.join(", ")}): split brain; they do not share revocations`;
  return error(message, "immediately fence the server that must not be the primary, and rebuild it as a standby");
}
