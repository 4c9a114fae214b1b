import { isLoopbackHost } from "../../../lib/host-names.ts";
import { UNCHECKED_TLS_MODES } from "../../../postgres/connect.ts";
import { addressOf, type Host, parseConnectionUrl } from "../../../postgres/connection-url.ts";
import { type Check, type Finding, ok, warning } from "../finding.ts";

/** How the connections to a database on another machine are protected. */
export const checkDatabaseTls: Check = async ({ config }) =>
  [
    judgeUrl("KEYHOLD_DATABASE_URL", config.databaseUrl),
    judgeUrl("KEYHOLD_DATABASE_LISTEN_URL", config.databaseListenUrl),
    judgeUrl("KEYHOLD_DATABASE_MIGRATE_URL", config.databaseMigrateUrl),
  ].flat();

export function judgeUrl(name: string, text: string | null): Finding[] {
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
  const message = `${name} connects to ${remote} ${lack}: whoever is in between may read and change what is exchanged`;
  return [warning(message, `add sslmode=verify-full to ${name}`)];
}

function isRemote(host: Host): boolean {
  return !host.name.startsWith("/") && !isLoopbackHost(addressOf(host));
}
