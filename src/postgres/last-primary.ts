import { addressOf, type ConnectionUrl, type Host } from "./connection-url.ts";

/** The address that last answered as a primary, by the addresses of a URL. All connections of the process try it first. */
const lastPrimaries = new Map<string, string>();

/** Returns the hosts in the order in which they are tried. */
export function hostsToTry({ hosts }: ConnectionUrl): readonly Host[] {
  const last = lastPrimaries.get(keyOf(hosts));
  const isLast = (host: Host) => addressOf(host) === last;
  return [...hosts.filter(isLast), ...hosts.filter((host) => !isLast(host))];
}

/** Records which of the hosts is the primary. */
export function rememberPrimary({ hosts }: ConnectionUrl, primary: Host): void {
  lastPrimaries.set(keyOf(hosts), addressOf(primary));
}

function keyOf(hosts: readonly Host[]): string {
  return hosts.map(addressOf).join();
}
