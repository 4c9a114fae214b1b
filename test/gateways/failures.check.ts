import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { eventually } from "../support/keyhold.ts";
import { startLoad } from "../support/load.ts";
import { type Application, startApplication } from "./application.ts";
import { send } from "./client.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { KINDS } from "./kinds/index.ts";
import { INSTALL_TIMEOUT, installPrograms } from "./programs.ts";
import { type Servers, startServers } from "./servers.ts";

/** Each gateway while its Keyhold servers are stopped, frozen or restarted. */

/** Milliseconds: the files allow a second to connect to each of two servers and three for its answer, and a busy machine takes longer. */
const MAX_REFUSAL = 2 * (1_000 + 3_000) + 4_000;

let application: Application;
let servers: Servers;
let credential: string;
beforeAll(async () => {
  await installPrograms();
  [application, servers] = await Promise.all([startApplication(), startServers("forward-auth,ext-authz")]);
  credential = (await servers.issue()).secret;
}, INSTALL_TIMEOUT);
afterAll(() => Promise.all([application?.close(), servers?.close()]));
beforeEach(() => application.forget());

describe.each(KINDS)("$name", (kind) => {
  let gateway: Gateway;
  beforeEach(async () => {
    // A server that was frozen rejects calls until it has a lease again.
    await eventually(areReady);
    const settings = { application: application.address, keyhold: servers.addresses, token: servers.token };
    gateway = await startGateway(kind, join(inject("testDir"), "failures"), settings);
    await eventually(isAllowed);
    application.forget();
  });
  afterEach(() => gateway?.stop());

  const headers = () => [["Authorization", `Bearer ${credential}`]] as const;
  const areReady = async () => {
    const answers = await Promise.all(servers.addresses.map((address) => fetch(`http://${address}/health/ready`)));
    return answers.every(({ ok }) => ok);
  };
  const isAllowed = async () => (await send(gateway.url, { headers: headers() })).status === 200;

  test("fails closed while both servers are stopped, and recovers", async () => {
    await servers.stop();
    try {
      for (let call = 0; call < 5; call++) {
        const { status } = await send(gateway.url, { headers: headers() });
        expect(kind.limits.unreachable).toContain(status);
      }
      expect(application.received).toEqual([]);
    } finally {
      await servers.start();
    }
    await eventually(isAllowed);
  });

  test("fails closed while both servers are frozen, within the time that its file sets, and recovers", async () => {
    servers.freeze(true);
    try {
      const from = performance.now();
      const answers = await Promise.all([1, 2, 3].map(() => send(gateway.url, { headers: headers() })));
      expect(performance.now() - from).toBeLessThan(MAX_REFUSAL);
      for (const { status } of answers) expect(kind.limits.unreachable).toContain(status);
      expect(application.received).toEqual([]);
    } finally {
      servers.freeze(false);
    }
    await eventually(isAllowed);
  });

  test("asks the other server while one is frozen", async () => {
    servers.freeze(true, [1]);
    try {
      for (let call = 0; call < 6; call++) {
        const { status } = await send(gateway.url, { headers: headers() });
        if (kind.limits.asksOnce) expect([200, ...kind.limits.unreachable]).toContain(status);
        else expect(status).toBe(200);
      }
    } finally {
      servers.freeze(false);
    }
  });

  test("loses no request in a rolling restart", async () => {
    let sent = 0;
    const call = async () => {
      const method = ++sent % 2 === 0 ? "GET" : "POST";
      const body = method === "POST" ? "a body" : undefined;
      const { status } = await send(gateway.url, { method, headers: headers(), ...(body !== undefined && { body }) });
      return status === 200 || `${method}: ${status}`;
    };
    const load = startLoad(4, call, 5);
    onTestFinished(() => load.stop());
    for (const place of [0, 1] as const) {
      await load.more(100);
      await servers.restart(place);
      // No event shows that a gateway uses the server again; it skips a failed one for a second.
      await new Promise((resolve) => setTimeout(resolve, 2500));
    }
    await load.more(100);
    await load.stop();
    console.info(`${kind.name}: ${load.count()} requests, ${load.failures.length} failed`);
    expect([...new Set(load.failures)], gateway.log()).toEqual([]);
    expect(application.received).toHaveLength(load.count());
  });
});
