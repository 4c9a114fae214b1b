import { isLoopbackHost } from "../../../lib/host-names.ts";
import { UNCHECKED_TLS_MODES } from "../../../postgres/connect.ts";
import { addressOf, type Host, parseConnectionUrl } from "../../../postgres/connection-url.ts";
import { type Check, type Finding, ok, warning } from "../finding.ts";

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
    .filter(isRemote)
    .map((host) => host.name)
    .join(", ");
  if (remote.length === 0) return [];
  const isChecked = parameters.get("sslrootcert") === "system";
  const mode = parameters.get("sslmode") ?? parameters.get("ssl") ?? "disable";
  if (isChecked || mode.startsWith("verify-")) return [ok(`${name} checks the certificate of ${remote}`)];
  const lack = UNCHECKED_TLS_MODES.includes(mode)
    ? `without a check of its certificate (sslmode=${mode})`
    : "without TLS";
  const message = `${name} connects to ${remote} ${lack}: traffic can be intercepted and modified`;
  return [warning(message, `add sslmode=verify-full to ${name}`)];
}

function isRemote(host: Host): boolean {
  return !host.name.startsWith("/") && !isLoopbackHost(addressOf(host));
}
