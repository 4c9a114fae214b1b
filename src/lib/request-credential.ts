import { decodeFormText, splitForm } from "./form-encoding.ts";

/** Where a client may put its credential. Header names are in lower case. */
export type CredentialPlace =
  | { readonly kind: "bearer" }
  | { readonly kind: "header" | "cookie" | "query"; readonly name: string };

/** The part of a client's request in which its credential is. */
export interface CredentialSource {
  /** Returns the values of all fields with this name, in lower case, in order. */
  header(name: string): readonly string[];
  /** Path and query; undefined if unknown. */
  readonly originalUri: string | undefined;
}

/** The credential, why it is not clear, or undefined if there is none. A problem never contains a part of the credential. */
type FoundCredential = string | { readonly problem: string } | undefined;

const DUPLICATE = problem("the same credential field is sent twice");
const DIFFERENT = problem("the request has two different credentials");
const MALFORMED = problem("a credential must contain only visible ASCII characters and no comma");
const NOT_BEARER = problem("the Authorization header must have the form Bearer <credential>");

/**
 * Returns the credential in these places (RFC 6750 §2). The same credential in two of them is accepted, because it is clear which one is
 * meant; two different ones, or two fields of one name, are a problem: the application could read another one than Keyhold.
 */
export function findCredential(places: readonly CredentialPlace[], source: CredentialSource): FoundCredential {
  let found: string | undefined;
  for (const place of places) {
    const credential = READERS[place.kind](source, "name" in place ? place.name : "");
    if (credential === undefined) continue;
    if (typeof credential === "object") return credential;
    if (found !== undefined && found !== credential) return DIFFERENT;
    found = credential;
  }
  return found;
}

type Read = (source: CredentialSource, name: string) => FoundCredential;

const READERS: Readonly<Record<CredentialPlace["kind"], Read>> = {
  bearer: (source) => bearerIn(source.header("authorization")),
  header: (source, name) => only(source.header(name)),
  cookie: (source, name) => cookieIn(source.header("cookie"), name),
  query: ({ originalUri }, name) => (originalUri === undefined ? undefined : queryIn(originalUri, name)),
};

/** Without the comma, which joins two values of a header. */
const CREDENTIAL = /^[!-+\--~]+$/;

function checked(value: string): FoundCredential {
  return CREDENTIAL.test(value) ? value : MALFORMED;
}

/** An empty value is none: some gateways cannot remove a header. */
function only(values: readonly string[]): FoundCredential {
  if (values.length > 1) return DUPLICATE;
  const value = values[0]?.trim() ?? "";
  return value === "" ? undefined : checked(value);
}

const BEARER = /^bearer +([!-+\--~]+)$/i;
const BEARER_SOMEWHERE = /(?:^|,)\s*bearer(?:\s|$)/i;

/** Another scheme, such as Basic, is for the application. */
function bearerIn(values: readonly string[]): FoundCredential {
  if (values.length > 1) return DUPLICATE;
  const value = values[0]?.trim() ?? "";
  const [, credential] = BEARER.exec(value) ?? [];
  if (credential !== undefined) return credential;
  return BEARER_SOMEWHERE.test(value) ? NOT_BEARER : undefined;
}

/** RFC 6265 §4.2.1. HTTP/2 may divide the header into several fields (RFC 9113 §8.2.3). */
function cookieIn(values: readonly string[], name: string): FoundCredential {
  const cookies = values.flatMap((value) => value.split(";")).map((cookie) => cookie.trim());
  return only(cookies.filter((cookie) => cookie.startsWith(`${name}=`)).map((cookie) => cookie.slice(name.length + 1)));
}

/** RFC 6750 §2.3. */
function queryIn(uri: string, name: string): FoundCredential {
  const start = uri.indexOf("?");
  if (start === -1) return undefined;
  const values = splitForm(uri.slice(start + 1)).filter(([encoded]) => decodeFormText(encoded) === name);
  const decoded = values.map(([, value]) => decodeFormText(value));
  return decoded.includes(undefined) ? MALFORMED : only(decoded.map((value) => value ?? ""));
}

function problem(text: string): FoundCredential {
  return Object.freeze({ problem: text });
}
