import { ACTOR, makeKeys } from "../gateways/servers.ts";
import { OF_HEADERS, SERVICE_STATUSES } from "../gateways/situations.ts";
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
  const keys = await makeKeys(keyhold, "unknown");
  const { checks, check } = responseChecks(name, url);
  await check("a derived JWT", bearer(await keyhold.derive(keys.valid)), { status: 200 });
  await check("its owner", bearer(keys.valid), { status: 200, pattern: new RegExp(`"reader": ?"${ACTOR}"`) });
  for (const { name: what, sent, status: atGateways, challenge } of OF_HEADERS) {
    const status = SERVICE_STATUSES[what] ?? atGateways;
    const pattern = status === 200 ? /^/ : new RegExp(`^\\d+ Bearer.*${(status === atGateways && challenge) || ""}`);
    await check(what, sent(keys), { status, pattern });
  }
  await proxy.down();
  // Without a challenge: another credential would not help.
  await check("Keyhold is unreachable", bearer(keys.valid), { status: 503, pattern: /^503 {2}/ });
  return checks;
}
