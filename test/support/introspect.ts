import { type Answer, readAnswer } from "./rest.ts";
import type { TestServer } from "./server.ts";

export const INTROSPECT = "/v2alpha1/introspect";

/** A form: parameters, or its text. */
export type Form = Readonly<Record<string, string>> | string;

/** Sends a form to the introspection endpoint of a server. */
export async function introspect(
  { url }: Pick<TestServer, "url">,
  form: Form,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const body = typeof form === "string" ? form : new URLSearchParams(form).toString();
  const type = { "content-type": "application/x-www-form-urlencoded" };
  return readAnswer(await fetch(url + INTROSPECT, { method: "POST", headers: { ...type, ...headers }, body }));
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
