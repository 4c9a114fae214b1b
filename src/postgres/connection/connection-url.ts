import { isIP } from "node:net";
import { invalidArgument } from "../../domain/errors.ts";

export interface Host {
  /** A name, an IP address, or the folder of a Unix socket, which starts with `/`. */
  readonly name: string;
  readonly port: number;
}

const DEFAULT_PORT = 5432;
const DEFAULT_HOST = "localhost";

const HOST_PARAMETERS: ReadonlySet<string> = new Set(["host", "port", "target_session_attrs"]);

/**
 * Parses the URL of a database as libpq does (PostgreSQL docs, 32.1.1.2 and 32.1.1.3); an absent user or database is empty. It may contain
 * several hosts, each with a port: `h1:5433,h2:5434`. As in libpq, `host` and `port` in the query override those before it. `field` is the
 * name of the variable.
 *
 * @throws KeyholdError `INVALID_ARGUMENT` that quotes nothing of the URL but a known value of `target_session_attrs`: if a password is not
 * percent-encoded, any part of the URL may belong to it.
 */
export function parseConnectionUrl(text: string, field = "database URL") {
  const [, scheme, authority = "", path = "", query = ""] =
    /^(postgres(?:ql)?:\/\/)([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?(?:#.*)?$/i.exec(text) ?? [];
  if (scheme === undefined) throw invalidArgument(field, FORM);
  const at = authority.lastIndexOf("@");
  const pairs = query.split("&").filter((pair) => pair !== "");
  const [ours, others] = [true, false].map((isOurs) =>
    pairs.filter((pair) => HOST_PARAMETERS.has(decode(pair.split("=")[0] ?? "", field)) === isOurs).join("&"),
  );
  const withoutHosts = `${scheme}${authority.slice(0, at + 1)}${DEFAULT_HOST}/${path}${others ? `?${others}` : ""}`;
  if (!URL.canParse(withoutHosts)) throw invalidArgument(field, FORM);
  const [user = "", ...password] = authority.slice(0, Math.max(at, 0)).split(":");
  decode(password.join(":"), field);
  const choice = new URLSearchParams(ours);
  requirePrimary(choice, field);
  return {
    /** At least one, in the order of the URL. */
    hosts: hostsOf(authority.slice(at + 1), choice, field),
    user: decode(user, field),
    database: decode(path, field),
    /** Parameters other than those that select the host or the kind of server. */
    parameters: new URLSearchParams(others),
    /** The URL without hosts and with only `parameters`, for a client that receives the host separately. */
    withoutHosts,
  };
}

/** Returns the address as text: `h1:5432`, `[::1]:5432`, or the path of a Unix socket. */
export function addressOf(host: Host): string {
  if (host.name.startsWith("/")) return socketFile(host);
  return `${isIP(host.name) === 6 ? `[${host.name}]` : host.name}:${host.port}`;
}

/** Returns the path of the Unix socket. Its name contains a port even if the server listens on none. */
export function socketFile({ name, port }: Host): string {
  return `${name}/.s.PGSQL.${port}`;
}

const FORM =
  "must be of the form postgres://user:password@host:5432/database, or with several hosts postgres://user:password@host1:5432,host2:5432/database; percent-encode characters of user and password other than letters, digits and -._~";

function hostsOf(text: string, choice: URLSearchParams, field: string): Host[] {
  const [names, ports] = [choice.getAll("host").at(-1), choice.getAll("port").at(-1)];
  const hosts =
    names === undefined
      ? text.split(",").map((one) => splitHost(one, field))
      : names.split(",").map((name) => ({ name, port: "" }));
  const numbers = ports?.split(",") ?? hosts.map(({ port }) => port);
  if (numbers.length !== 1 && numbers.length !== hosts.length)
    throw invalidArgument(field, `has ${hosts.length} hosts and ${numbers.length} ports: set one port for each host`);
  return hosts.map(({ name }, place) => ({
    name: toName(name, hosts.length === 1, field),
    port: toPort(numbers[numbers.length === 1 ? 0 : place] ?? "", field),
  }));
}

function splitHost(text: string, field: string): { name: string; port: string } {
  const [whole, bracketed, name = "", port = ""] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(.*))?$/.exec(text) ?? [];
  const address = decode(bracketed ?? name, field);
  if (whole !== undefined && (bracketed === undefined || isIP(address) === 6)) return { name: address, port };
  throw invalidArgument(field, "has a host that is neither a name nor an IPv6 address in brackets");
}

/** An empty host among others is a mistake; alone it means this machine, as in `postgres:///keyhold`. */
function toName(name: string, isOnly: boolean, field: string): string {
  if (name === "" && isOnly) return DEFAULT_HOST;
  if (name === "") throw invalidArgument(field, "has an empty host: separate hosts with a single comma");
  if (name.startsWith("/") || isIP(name) !== 0 || !/[\s:/?#@[\]<>^|%\\]/.test(name)) return name;
  throw invalidArgument(field, "has a host name with invalid characters");
}

function toPort(text: string, field: string): number {
  if (text === "") return DEFAULT_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65535) return port;
  throw invalidArgument(
    field,
    "has a port that is not a number from 1 to 65535; each host has its own, as in host1:5432,host2:5433",
  );
}

/** The other values of libpq (PostgreSQL docs, 32.1.2), and why they are rejected. */
const STANDBY = "a standby is read-only and may lag";
const OTHER_SERVERS: ReadonlyMap<string, string> = new Map([
  ...["any", "read-only", "standby", "prefer-standby"].map((value) => [value, STANDBY] as const),
  ["read-write", "use primary: read-write does not distinguish a standby from a primary that is read-only by default"],
]);

function requirePrimary(choice: URLSearchParams, field: string): void {
  for (const value of choice.getAll("target_session_attrs")) {
    if (value === "primary") continue;
    const why = OTHER_SERVERS.get(value);
    const setting = why === undefined ? "target_session_attrs" : `target_session_attrs=${value}`;
    throw invalidArgument(field, `has ${setting}: must be primary, the default${why === undefined ? "" : ` (${why})`}`);
  }
}

function decode(text: string, field: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidArgument(field, "has a malformed percent-encoding: write %25 for %");
  }
}
