import { isIP } from "node:net";

/** Names that mean the machine itself (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3). */
const LOOPBACK = /^(?:(?:[a-z\d-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;

const PORT = /:\d{1,5}$/;

/** Whether `host`, of the form of the header field Host, is a loopback address or a name that means one. */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(withoutPort(host));
}

/** Whether `host` is an IP address. No web page that is served by somebody else has that origin (DNS rebinding needs a name). */
export function isAddressHost(host: string): boolean {
  const name = withoutPort(host);
  return isIP(name) === 4 || (/^\[.*\]$/.test(name) && isIP(name.slice(1, -1)) === 6);
}

/** Whether `host` is one of the names; `*.example.com` stands for every name below `example.com`. */
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
