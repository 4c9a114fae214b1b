import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { revoke, succeeded } from "../support/conformance.ts";
import { serve } from "../support/keyhold.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { issue, type Json, paths, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { type Receiver, startReceiver } from "../support/webhook-receiver.ts";

/** Webhooks of several servers, each a process of its own, on one database. */

const WITHIN = { timeout: 120_000, interval: 50 };

async function start(): Promise<{
  database: { ownerUrl: string };
  receiver: Receiver;
  server: () => ReturnType<typeof serve>;
}> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const environment = {
    ...{ KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "off", KEYHOLD_AUTH: "none", KEYHOLD_CACHE_SIZE: "16" },
    ...{ KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET },
    KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  };
  const server = async () => {
    const one = await serve(environment);
    onTestFinished(() => {
      one.kill("SIGKILL");
    });
    return one;
  };
  return { database, receiver, server };
}

async function createEndpoint(server: { readonly url: string }, { url }: Receiver): Promise<string> {
  const body = { endpoint_id: "one", url, event_types: ["key.revoked"] };
  succeeded(await restClient(server)("POST", paths.webhookEndpoints, body));
  return `${paths.webhookEndpoints}/one`;
}

test("three servers make each attempt once", async () => {
  const { receiver, server } = await start();
  const servers = [await server(), await server(), await server()];
  await createEndpoint(servers[0] as (typeof servers)[0], receiver);
  const revokeBy = async (one: { readonly url: string }) => {
    const rest = restClient(one);
    const { keyId } = await issue(rest);
    await revoke(rest, keyId);
    return keyId;
  };
  const keyIds = await Promise.all(
    Array.from({ length: 60 }, (_, place) => revokeBy(servers[place % 3] as (typeof servers)[0])),
  );
  await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThanOrEqual(60), WITHIN);
  // Time for the attempts that must not happen.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(receiver.received.map(({ body }) => body.data.key_id).sort()).toEqual(keyIds.sort());
});

test("what a killed server has begun is sent by another one", async () => {
  const { database, receiver, server } = await start();
  const sql = postgres(database.ownerUrl, { max: 1 });
  onTestFinished(() => sql.end());
  const [first, second] = [await server(), await server()];
  const path = await createEndpoint(first, receiver);
  const held = Promise.withResolvers<number>();
  receiver.answering = () => held.promise;
  const rest = restClient(first);
  const { keyId } = await issue(rest);
  await revoke(rest, keyId);
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), WITHIN);
  // Whichever made the attempt; a third one finds it.
  for (const one of [first, second]) one.kill("SIGKILL");
  held.resolve(500);
  receiver.answering = () => 204;
  const third = await server();
  await sql`UPDATE webhook_deliveries SET lease_expire_time = now() - interval '1 second'`;
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), WITHIN);
  const [one, two] = receiver.received as [Receiver["received"][0], Receiver["received"][0]];
  expect([two.body, two.headers["webhook-id"]]).toEqual([one.body, one.headers["webhook-id"]]);
  await vi.waitFor(async () => {
    const { webhook_deliveries } = succeeded(await restClient(third)("GET", `${path}/deliveries`));
    expect(webhook_deliveries.map(({ state }: Json) => state)).toEqual(["WEBHOOK_DELIVERY_STATE_SUCCEEDED"]);
  }, WITHIN);
});

test("servers that are killed at any moment lose no event", async () => {
  const { receiver, server } = await start();
  const keyIds: string[] = [];
  let current = await server();
  await createEndpoint(current, receiver);
  for (let round = 0; round < 6; round++) {
    const rest = restClient(current);
    for (let count = 0; count < 5; count++) {
      const { keyId } = await issue(rest, { request_id: randomUUID() });
      await revoke(rest, keyId);
      keyIds.push(keyId);
    }
    // From before the events have a position to after some deliveries were sent.
    await new Promise((resolve) => setTimeout(resolve, round * 40));
    current.kill("SIGKILL");
    current = await server();
  }
  const missing = () => keyIds.filter((keyId) => !receiver.received.some(({ body }) => body.data.key_id === keyId));
  await vi.waitFor(() => expect(missing()).toEqual([]), { timeout: 120_000, interval: 200 });
});
