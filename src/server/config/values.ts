import { invalidArgument } from "../../domain/errors.ts";
import { parseNetworks } from "../../lib/client-address.ts";
import { parseConnectionUrl } from "../../postgres/connection/connection-url.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the value of a variable; undefined if it is not set or empty. */
export type Get = (name: string) => string | undefined;

/** `name` is the variable, or the equivalent option of the command. */
export function serverUrl(name: string, text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === "" && !/[?#]/.test(text)) {
    return text.replace(/\/+$/, "");
  }
  throw invalidArgument(name, "must have the form https://host:port, without a user, query or fragment");
}

/** The form that browsers send (RFC 6454 §6.2); any other would never match. */
export function origin(text: string, name: string): string {
  const url = URL.parse(text);
  if (url !== null && text === `${url.protocol}//${url.host}`) return text;
  throw invalidArgument(name, "must be comma-separated origins, such as https://app.example.com");
}

/** A host name without port, or a wildcard for the names below one. */
export function hostName(text: string): string {
  if (/^(?:(?:\*\.)?[\w-]+(?:\.[\w-]+)*|\[[\da-f:.]+\])$/i.test(text)) return text;
  throw invalidArgument(
    "KEYHOLD_ALLOWED_HOSTS",
    `invalid entry ${JSON.stringify(text)}: use a comma-separated list of host names without a port, such as keyhold.internal or *.example.com`,
  );
}

/** Returns the canonical CIDR blocks of trusted peers. */
export function networks(name: string, text: string | undefined): readonly string[] {
  const parsed = parseNetworks(list(text));
  if ("cidrs" in parsed) return parsed.cidrs;
  throw invalidArgument(name, parsed.problem);
}

/** Returns the text unchanged. Errors do not contain it because it may include a password. */
export function postgresUrl(text: string, name: string): string {
  parseConnectionUrl(text, name);
  return text;
}

export function list(text: string | undefined): string[] {
  return (text ?? "").split(",").flatMap((item) => item.trim() || []);
}

export function integer(name: string, text: string, min: number, max: number, form = "a whole number"): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalidArgument(name, `must be ${form} from ${min} to ${max}`);
}

export function oneOf<T extends string>(name: string, text: string, allowed: readonly T[]): T {
  const value = allowed.find((choice) => choice === text);
  if (value === undefined) throw invalidArgument(name, `must be one of ${allowed.join(", ")}`);
  return value;
}

/** Returns the distinct names of a list. */
export function names<T extends string>(
  variable: string,
  text: string | undefined,
  allowed: readonly T[],
): readonly T[] {
  return [...new Set(list(text))].map((name) => oneOf(variable, name, allowed));
}
