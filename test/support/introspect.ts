import type { Json } from "./rest.ts";
import type { TestServer } from "./server.ts";

export const INTROSPECT = "/v2alpha1/introspect";

export interface IntrospectionAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Json;
}

/** A form: parameters, or its text. */
export type Form = Readonly<Record<string, string>> | string;

/** Sends a form to the introspection endpoint of a server. */
export async function introspect(
  { url }: Pick<TestServer, "url">,
  form: Form,
  headers: Readonly<Record<string, string>> = {},
): Promise<IntrospectionAnswer> {
  const body = typeof form === "string" ? form : new URLSearchParams(form).toString();
  const type = { "content-type": "application/x-www-form-urlencoded" };
  const response = await fetch(url + INTROSPECT, { method: "POST", headers: { ...type, ...headers }, body });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
}

/** Returns the header of HTTP Basic authentication, as an OAuth client encodes it (RFC 6749 §2.3.1). */
export function basic(name: string, password: string): Record<string, string> {
  const [user, secret] = [name, password].map((text) => new URLSearchParams({ a: text }).toString().slice(2));
  return basicAsIs(user ?? "", secret ?? "");
}

/** The same without form encoding, as curl sends it. */
export function basicAsIs(name: string, password: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}` };
}
