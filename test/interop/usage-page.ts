import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import type { Server } from "./servers.ts";
import { keyholdOf } from "./service-checks.ts";
import { whileServing } from "./service-process.ts";
import type { Check } from "./tap.ts";

const ACTOR = "customer of the usage page";

/** Milliseconds. A server stores usage every 10 s. */
const PATIENCE = 30_000;

/** Starts the page with a customer's usage, and checks that it shows a verification. */
export async function checkUsagePage(name: string, script: string, cwd: string, { env }: Server): Promise<Check> {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}/`;
  const rate_limits = [{ name: "tokens", quota: 1_000, window: "1h" }];
  const { secret } = await keyholdOf(env).issue({ actor_id: ACTOR, rate_limits });
  const body = JSON.stringify({ credential: secret, charges: [{ name: "tokens", cost: 25 }] });
  const headers = { authorization: `Bearer ${env.KEYHOLD_TOKEN}`, "content-type": "application/json" };
  await fetch(`${env.KEYHOLD_URL}/v2alpha1/admin/apiKeys:verify`, { method: "POST", headers, body });
  return whileServing({ script, cwd, env: { ...env, PORT: port, ACTOR_ID: ACTOR }, url }, async () => {
    const end = performance.now() + PATIENCE;
    let page = await readPage(url);
    while (!page.includes("1 requests, 0 rejected") && performance.now() < end) {
      await delay(500);
      page = await readPage(url);
    }
    return {
      name: `example ${name}: shows the usage`,
      holds: page.includes("1 requests and 25 tokens in the last"),
      comment: page,
    };
  });
}

async function readPage(url: string): Promise<string> {
  return (await fetch(url)).text();
}
