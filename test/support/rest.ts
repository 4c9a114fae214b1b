import type { TestServer } from "./server.ts";

/** Untyped JSON of a response. */
// biome-ignore lint/suspicious/noExplicitAny: tests check the members of the body
export type Json = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
  readonly text: string;
}

/** Sends JSON, or a form, (if a body is given) to a path of the server, and parses the JSON of the response. */
export type RestClient = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Answer>;

export function restClient(server: Pick<TestServer, "url">, defaults: Record<string, string> = {}): RestClient {
  return async (method, path, body, headers = {}) => {
    const isForm = body instanceof URLSearchParams;
    const response = await fetch(server.url + path, {
      method,
      headers: {
        ...(body === undefined || isForm ? {} : { "content-type": "application/json" }),
        ...defaults,
        ...headers,
      },
      body: body === undefined || isForm ? body : JSON.stringify(body),
    });
    return readAnswer(response);
  };
}

/** Parses the JSON of a response. */
export async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: parse(text) };
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The paths of the specification's endpoints. */
export const paths = {
  issued: "/v2alpha1/admin/issuedApiKeys",
  imported: "/v2alpha1/admin/importedApiKeys",
  hmacKeys: "/v2alpha1/admin/hmacKeys",
  keys: "/v2alpha1/admin/apiKeys",
  selfRevoke: "/v2alpha1/apiKeys:selfRevoke",
  auditEvents: "/v2alpha1/admin/auditEvents",
  auditCheckpoint: "/v2alpha1/admin/auditCheckpoint",
  auditProof: "/v2alpha1/admin/auditProof",
  actors: "/v2alpha1/admin/actors",
  usage: "/v2alpha1/admin/usage",
  webhookEndpoints: "/v2alpha1/admin/webhookEndpoints",
  caller: "/v2alpha1/admin/caller",
  keyPageSessions: "/v2alpha1/admin/keyPageSessions",
  jwks: "/v2alpha1/derivedKeys/jwks.json",
} as const;

/** Issues a key and returns its secret and identifier. */
export async function issue(
  rest: RestClient,
  fields: Record<string, unknown> = {},
): Promise<{ secret: string; keyId: string; record: Json }> {
  const { status, body, text } = await rest("POST", paths.issued, { name: "a key", actor_id: "actor_1", ...fields });
  if (status !== 200) throw new Error(`issuing answered ${status}: ${text}`);
  return { secret: body.secret, keyId: body.issued_api_key.key_id, record: body.issued_api_key };
}

/** Returns the verdict on a credential. */
export async function verify(rest: RestClient, credential: string): Promise<Json> {
  const { status, body, text } = await rest("POST", `${paths.keys}:verify`, { credential });
  if (status !== 200) throw new Error(`verifying answered ${status}: ${text}`);
  return body;
}

/** Returns the time so many hours from now in the form in which the service writes it, which omits zero milliseconds. */
export function inHours(hours: number): string {
  return new Date(Date.now() + hours * 3_600_000).toISOString().replace(/\.000Z$/, "Z");
}
