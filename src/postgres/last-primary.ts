import { addressOf, type ConnectionUrl, type Host } from "./connection-url.ts";

/** The host that last answered as a primary, by the addresses of a URL: all connections of the process begin with it. */
const lastPrimaries = new Map<string, Host>();

/** Returns the hosts in the order in which they are tried. */
export function hostsToTry({ hosts }: ConnectionUrl): readonly Host[] {
  const last = lastPrimaries.get(keyOf(hosts));
  const [first, others] = [[], []] as [Host[], Host[]];
  for (const host of hosts) (last !== undefined && addressOf(host) === addressOf(last) ? first : others).push(host);
  return [...first, ...others];
}

/** Remembers which of the hosts is the primary. */
export function rememberPrimary({ hosts }: ConnectionUrl, primary: Host): void {
  lastPrimaries.set(keyOf(hosts), primary);
}

function keyOf(hosts: readonly Host[]): string {
  return hosts.map(addressOf).join();
}
