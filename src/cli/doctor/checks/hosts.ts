import { type HostReport, readHosts } from "../../../postgres/hosts.ts";
import { type Check, error, type Finding, ok, warning } from "../finding.ts";

/** Milliseconds for a host to say what it is. */
const TIMEOUT = 3_000;

/** What each host of each URL is: Keyhold uses the primary, and finds another after a failover only if the URL names it. */
export const checkHosts: Check = async ({ config }) => {
  const urls = [
    ["KEYHOLD_DATABASE_URL", config.databaseUrl],
    ["KEYHOLD_DATABASE_LISTEN_URL", config.databaseListenUrl],
  ] as const;
  const found = await Promise.all(
    urls.map(async ([name, url]) => (url === null ? [] : judgeHosts(name, await readHosts(url, TIMEOUT)))),
  );
  return found.flat();
};

export function judgeHosts(name: string, reports: readonly HostReport[]): Finding[] {
  const primaries = new Map(reports.flatMap(({ address, server }) => (server === null ? [] : [[server, address]])));
  const findings = reports.map((report) => judgeHost(name, report, reports.length));
  if (primaries.size > 1) findings.push(splitBrain(name, [...primaries.values()]));
  const isKnownToLack = reports.every(({ kind }) => kind === "standby");
  if (isKnownToLack) findings.push(error(`${name} names no primary`, `add the primary to ${name}`));
  return findings;
}

function judgeHost(name: string, { address, kind, failure }: HostReport, count: number): Finding {
  if (kind === "primary") return ok(`${name}: ${address} is the primary`);
  if (kind === "standby") return ok(`${name}: ${address} is a standby, which is not used until it is promoted`);
  const message = `${name}: ${address} ${failure}`;
  const remedy = "see that the server runs and that the address, the role and the password are right";
  return count === 1
    ? error(message, remedy)
    : warning(`${message}: nothing can be moved to it by a failover now`, `${remedy}, or remove it from ${name}`);
}

function splitBrain(name: string, addresses: readonly string[]): Finding {
  const message = `${name} names ${addresses.length} servers that accept writes (${addresses.join(", ")}): a revocation at one is unknown to the other`;
  return error(message, "stop the one that must not be the primary at once (fencing), and rebuild it as a standby");
}
