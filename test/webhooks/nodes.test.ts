import postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { WebhookDeliveryState } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { createKeyholdClient } from "../../src/client/index.ts";
import { type Serving, serve } from "../support/keyhold.ts";
import { createTestDatabase } from "../support/postgres.ts";
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
    ...{ KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8", KEYHOLD_LEASE_TTL: "15s" },
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

type Server = Pick<Serving, "url">;

/** It repeats what fails with UNAVAILABLE: a server on a slow machine may lose its lease for a moment. */
const clientOf = ({ url }: Server) => createKeyholdClient({ baseUrl: url, timeoutMs: 60_000 });

async function createEndpoint(server: Server, { url }: Receiver): Promise<void> {
  const endpoint = { endpointId: "one", url, eventTypes: ["key.issued"] };
  await clientOf(server).webhookEndpoints.createWebhookEndpoint(endpoint);
}

async function issueKey(server: Server): Promise<string> {
  const { issuedApiKey } = await clientOf(server).issuedApiKeys.createIssuedApiKey({ name: "n", actorId: "a" });
  return issuedApiKey?.keyId ?? "";
}

test("three servers make each attempt once", async () => {
  const { receiver, server } = await start();
  const servers = [await server(), await server(), await server()];
  await createEndpoint(servers[0] as Server, receiver);
  const keyIds = await Promise.all(Array.from({ length: 60 }, (_, place) => issueKey(servers[place % 3] as Server)));
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
  await createEndpoint(first, receiver);
  const held = Promise.withResolvers<number>();
  receiver.answering = () => held.promise;
  await issueKey(first);
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
    const { webhookDeliveries } = await clientOf(third).webhookEndpoints.listWebhookDeliveries({ endpointId: "one" });
    expect(webhookDeliveries.map(({ state }) => state)).toEqual([WebhookDeliveryState.SUCCEEDED]);
  }, WITHIN);
});

test("servers that are killed at any moment lose no event", async () => {
  const { receiver, server } = await start();
  const keyIds: string[] = [];
  let current = await server();
  await createEndpoint(current, receiver);
  for (let round = 0; round < 6; round++) {
    for (let count = 0; count < 5; count++) keyIds.push(await issueKey(current));
    // From before the events have a position to after some deliveries were sent.
    await new Promise((resolve) => setTimeout(resolve, round * 40));
    current.kill("SIGKILL");
    current = await server();
  }
  const missing = () => keyIds.filter((keyId) => !receiver.received.some(({ body }) => body.data.key_id === keyId));
  await vi.waitFor(() => expect(missing()).toEqual([]), { timeout: 120_000, interval: 200 });
});
