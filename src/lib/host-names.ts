import { isIP } from "node:net";

/** Loopback names and addresses (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3). */
const LOOPBACK = /^(?:(?:[a-z\d-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;

const PORT = /:\d{1,5}$/;

/** Returns whether `host` (a Host header field) is a loopback address or name. */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(withoutPort(host));
}

/** Returns whether `host` (a Host header field) is an IP address. DNS rebinding needs a name, so an address is safe. */
export function isAddressHost(host: string): boolean {
  const name = withoutPort(host);
  return isIP(name) === 4 || (/^\[.*\]$/.test(name) && isIP(name.slice(1, -1)) === 6);
}

/** Returns whether `host` (a Host header field) is one of the names. `*.example.com` matches every name below `example.com`. */
export function isListedHost(host: string, names: readonly string[]): boolean {
  const name = withoutPort(host).toLowerCase();
  return names.some((listed) => {
    const text = listed.toLowerCase();
    return text.startsWith("*.") ? name.endsWith(text.slice(1)) && name.length >= text.length : name === text;
  });
}

function withoutPort(host: string): string {
  return host.replace(PORT, "");
}
