import { TcpProxy } from "../support/tcp-proxy.ts";
import type { Server } from "./servers.ts";
import { bearer, checkService, type Keyhold, keyholdOf, responseChecks } from "./service-checks.ts";
import type { Check } from "./tap.ts";

/**
 * Starts the protected web service of an example with a shell script, and checks how it responds to each kind of credential. The service
 * reads KEYHOLD_URL, KEYHOLD_TOKEN and PORT, and serves `GET /books`, which requires the scope `read` and returns `{"reader": <actor_id>}`.
 */
export async function checkProtectedService(
  name: string,
  script: string,
  cwd: string,
  { env }: Server,
): Promise<readonly Check[]> {
  const proxy = await TcpProxy.start(String(env.KEYHOLD_URL));
  const service = { script, cwd, env: { ...env, KEYHOLD_URL: new URL(proxy.url).origin } };
  try {
    return await checkService(name, service, (url) => checkResponses(name, url, keyholdOf(env), proxy));
  } finally {
    await proxy.close();
  }
}

async function checkResponses(name: string, url: string, keyhold: Keyhold, proxy: TcpProxy): Promise<readonly Check[]> {
  const reader = await keyhold.createKey(["read"]);
  const writer = await keyhold.createKey(["write"]);
  const { checks, check } = responseChecks(name, url);
  await check("no credential", {}, { status: 401, pattern: /Bearer/ });
  await check("a valid secret", bearer(reader.secret), {
    status: 200,
    pattern: new RegExp(`"reader": ?"${reader.actorId}"`),
  });
  await check("a valid secret in X-API-Key", { "x-api-key": reader.secret }, { status: 200 });
  await check("a derived JWT", bearer(await keyhold.deriveJwt(reader.secret)), { status: 200 });
  await check("an unknown credential", bearer("not-a-key"), { status: 401, pattern: /Bearer.*error="?invalid_token/ });
  await check("a credential that is not ASCII", bearer("\u00ff"), { status: 401 });
  await check("a missing scope", bearer(writer.secret), { status: 403, pattern: /insufficient_scope/ });
  const two = { ...bearer(reader.secret), "x-api-key": reader.secret };
  await check("two credentials", two, { status: 400 });
  await keyhold.revoke(writer.keyId);
  await check("a revoked key", bearer(writer.secret), { status: 401, pattern: /invalid_token/ });
  await proxy.down();
  await check("Keyhold is unreachable", bearer(reader.secret), { status: 503 });
  return checks;
}
