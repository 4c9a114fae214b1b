import { type Json, paths, type RestClient } from "./rest.ts";

/** What browsers add to the calls of a page to its own origin. */
const SAME_ORIGIN = { "sec-fetch-site": "same-origin" };

/** A created session of the key page. */
export interface CreatedKeyPage {
  readonly sessionId: string;
  readonly url: string;
  /** What the fragment of the URL contains. */
  readonly token: string;
}

/** Creates a session for the actor `own`, with every permission and the scope `read` unless fields say otherwise. */
export async function createKeyPage(rest: RestClient, fields: Json = {}): Promise<CreatedKeyPage> {
  const permissions = ["CREATE", "ROTATE", "REVOKE", "VIEW_USAGE"].map((name) => `KEY_PAGE_PERMISSION_${name}`);
  const request = { actor_id: "own", permissions, allowed_scopes: ["read"], ...fields };
  const { status, body, text } = await rest("POST", paths.keyPageSessions, request);
  if (status !== 200) throw new Error(`the creation answered ${status}: ${text}`);
  return { sessionId: body.session_id, url: body.url, token: new URL(body.url).hash.slice(1) };
}

/** Opens a link as the page does. */
export function openLink(url: string, token: string): Promise<Response> {
  const headers = { ...SAME_ORIGIN, authorization: `Bearer ${token}` };
  return fetch(`${url}/keys/session`, { method: "POST", headers });
}

/** Creates and opens a session, and returns it as it is sealed in the cookie. */
export async function openKeyPage(url: string, rest: RestClient, fields: Json = {}): Promise<string> {
  const response = await openLink(url, (await createKeyPage(rest, fields)).token);
  if (response.status !== 204) throw new Error(`the link answered ${response.status}: ${await response.text()}`);
  return sealedIn(response);
}

/** Returns the sealed session that a response sets as a cookie. */
export function sealedIn({ headers }: Response): string {
  return /^__Host-keyhold-key-page=([^;]+);/.exec(headers.get("set-cookie") ?? "")?.[1] ?? "";
}

/** Calls an RPC such as `ApiKeysService/RevokeApiKey` as the page does. */
export async function callAsPage(
  url: string,
  sealed: string | null,
  name: string,
  message: Json = {},
): Promise<{ status: number; body: Json; headers: Headers }> {
  const response = await fetch(`${url}/keys/api/keyhold.v2alpha1.${name}`, {
    method: "POST",
    headers: {
      ...SAME_ORIGIN,
      "content-type": "application/json",
      ...(sealed !== null && { cookie: `__Host-keyhold-key-page=${sealed}` }),
    },
    body: JSON.stringify(message),
  });
  return { status: response.status, body: await response.json(), headers: response.headers };
}
