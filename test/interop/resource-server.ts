import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { request } from "node:https";
import { ACTOR } from "../gateways/servers.ts";
import { listenLocally } from "../support/listen.ts";
import { succeed } from "../support/programs/run.ts";
import type { Server } from "./servers.ts";
import { bearer, checkService, type Keyhold, keyholdOf, responseChecks } from "./service-checks.ts";
import type { Check } from "./tap.ts";

/**
 * Starts the web service of an example that verifies JWTs offline, with a shell script, and checks its responses. The service reads
 * KEYHOLD_URL and PORT, and serves `GET /books` as `protected-service.ts` describes.
 */
export async function checkResourceServer(
  name: string,
  script: string,
  cwd: string,
  { env }: Server,
): Promise<readonly Check[]> {
  const gateway = await startGateway(env);
  const service = { script, cwd, env: { ...env, KEYHOLD_URL: gateway.url } };
  try {
    return await checkService(name, service, async (url) => {
      const keyhold = keyholdOf(service.env);
      const checks = await checkResponses(name, url, keyhold);
      return [...checks, ...(await checkChanges(name, url, keyhold, { env, stop: gateway.close }))];
    });
  } finally {
    gateway.close();
  }
}

async function checkResponses(name: string, url: string, keyhold: Keyhold): Promise<readonly Check[]> {
  const reader = await keyhold.issue();
  const writer = await keyhold.issue({ scopes: ["write"] });
  const jwt = await keyhold.derive(reader.secret);
  const tampered = jwt.replace(/.(?=.{40}$)/, (letter) => (letter === "A" ? "B" : "A"));
  const { checks, check } = responseChecks(name, url);
  await check("no credential", {}, { status: 401, pattern: /Bearer/ });
  const pattern = new RegExp(`"reader": ?"${ACTOR}"`);
  await check("a derived JWT", bearer(jwt), { status: 200, pattern });
  await check("a tampered JWT", bearer(tampered), { status: 401, pattern: /invalid_token/ });
  await check("a secret", bearer(reader.secret), { status: 401, pattern: /invalid_token/ });
  const other = await keyhold.derive(writer.secret);
  await check("a missing scope", bearer(other), { status: 403, pattern: /insufficient_scope/ });
  return checks;
}

/** Rotates the signing key, and then takes Keyhold away: tokens are verified with the public keys that the service knows. */
async function checkChanges(
  name: string,
  url: string,
  keyhold: Keyhold,
  { env, stop }: { readonly env: Server["env"]; readonly stop: () => void },
): Promise<readonly Check[]> {
  const { secret } = await keyhold.issue();
  await succeed({ program: String(env.KEYHOLD_ROTATE_SIGNING_KEY), args: [], cwd: "." });
  const jwt = await keyhold.derive(secret);
  const { checks, check } = responseChecks(name, url);
  await check("a JWT of a new signing key", bearer(jwt), { status: 200 });
  stop();
  await check("Keyhold is unreachable, a JWT of a known signing key", bearer(jwt), { status: 200 });
  await check("Keyhold is unreachable, no credential", {}, { status: 401 });
  return checks;
}

/** Terminates TLS in front of the server, as a service mesh does, because the service trusts no test certificates. */
async function startGateway({ KEYHOLD_URL, KEYHOLD_CA_FILE }: Server["env"]) {
  const ca = readFileSync(String(KEYHOLD_CA_FILE));
  const server = createServer((incoming, response) => {
    const { method, headers, url = "" } = incoming;
    const outgoing = request(new URL(url, KEYHOLD_URL), { ca, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.once("error", (error) => response.destroy(error));
    incoming.pipe(outgoing);
  });
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${await listenLocally(server)}`, close };
}
