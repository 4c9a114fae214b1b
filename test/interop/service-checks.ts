import { type Sent, send } from "../gateways/client.ts";
import { ACTOR } from "../gateways/servers.ts";
import { freePort } from "../support/free-port.ts";
import type { Server } from "./servers.ts";
import { whileServing } from "./service-process.ts";
import type { Check } from "./tap.ts";

export interface Wanted {
  readonly status: number;
  /** Of status, challenge and body. */
  readonly pattern?: RegExp;
}

/** Starts the web service of an example on a free port and runs the checks of its `GET /books`. A service that fails is a failed check. */
export async function checkService(
  name: string,
  { script, cwd, env }: { readonly script: string; readonly cwd: string; readonly env: Server["env"] },
  checks: (url: string) => Promise<readonly Check[]>,
): Promise<readonly Check[]> {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}/books`;
  try {
    return await whileServing({ script, cwd, env: { ...env, PORT: port }, url }, () => checks(url));
  } catch (error) {
    return [{ name: `${name}: runs`, holds: false, comment: String(error) }];
  }
}

/** Checks the responses of a service to requests. */
export function responseChecks(name: string, url: string) {
  const checks: Check[] = [];
  const check = async (what: string, sent: Sent, wanted: Wanted) => {
    const { status, header, body } = await send(url, { ...sent, target: new URL(url).pathname });
    const found = `${status} ${header("WWW-Authenticate") ?? ""} ${body}`;
    const holds = status === wanted.status && (wanted.pattern?.test(found) ?? true);
    checks.push({ name: `${name}: ${what}: ${wanted.status}`, holds, comment: `found ${found}` });
  };
  return { checks, check };
}

export function bearer(credential: string): Sent {
  return { headers: [["Authorization", `Bearer ${credential}`]] };
}

interface JsonResponse {
  readonly secret?: string;
  readonly issued_api_key?: { readonly key_id: string };
  readonly token?: { readonly token: string };
}

export type Keyhold = ReturnType<typeof keyholdOf>;

/** Calls the REST API with the admin token. */
export function keyholdOf({ KEYHOLD_URL, KEYHOLD_TOKEN }: Server["env"]) {
  const post = async (path: string, body: object): Promise<JsonResponse> => {
    const headers = { authorization: `Bearer ${KEYHOLD_TOKEN}`, "content-type": "application/json" };
    const url = new URL(`/v2alpha1/admin/${path}`, KEYHOLD_URL);
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as JsonResponse;
  };
  return {
    async issue(fields: Record<string, unknown> = {}) {
      const all = { name: "example", actor_id: ACTOR, scopes: ["read"], ...fields };
      const { secret, issued_api_key } = await post("issuedApiKeys", all);
      return { secret: String(secret), keyId: String(issued_api_key?.key_id) };
    },
    /** Derives a JWT, for an audience or for none. */
    async derive(credential: string, ...audience: readonly string[]): Promise<string> {
      const { token } = await post("apiKeys:derive", { credential, audience, algorithm: "TOKEN_ALGORITHM_JWT" });
      return String(token?.token);
    },
    async revoke(keyId: string) {
      await post(`apiKeys/${keyId}:revoke`, { reason: "REVOCATION_REASON_SUPERSEDED" });
    },
  };
}
