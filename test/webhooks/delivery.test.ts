import { randomUUID } from "node:crypto";
import { createServer, type Socket } from "node:net";
import { Webhook } from "standardwebhooks";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { isSigned, parseCheckpoint, parseVerifierKey } from "../../src/audit/tree/note.ts";
import { revoke, succeeded } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { listenLocally } from "../support/listen.ts";
import { type Answer, issue, type Json, paths } from "../support/rest.ts";
import { type Answering, type Receiver, startReceiver } from "../support/webhook-receiver.ts";

/** Webhooks end to end: a real server, a real database, and receivers over HTTP. */

const suite = useGuardedService(() => ({
  KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  KEYHOLD_ISSUER: "https://keys.example",
}));
const WITHIN = { timeout: 10_000, interval: 50 };
const receivers: Receiver[] = [];
const created: string[] = [];

afterEach(async () => {
  for (const id of created.splice(0)) await suite.rest("DELETE", `${paths.webhookEndpoints}/${id}`);
  for (const receiver of receivers.splice(0)) await receiver.close();
});

interface Endpoint {
  readonly id: string;
  readonly path: string;
  readonly secret: string;
  readonly receiver: Receiver;
}

async function receive(answering?: Answering): Promise<Receiver> {
  const receiver = await startReceiver(answering);
  receivers.push(receiver);
  return receiver;
}

async function createEndpoint(fields: Json = {}, answering?: Answering): Promise<Endpoint> {
  const receiver = await receive(answering);
  const id = randomUUID();
  const body = { endpoint_id: id, url: receiver.url, event_types: ["key.revoked"], ...fields };
  const { secret } = succeeded(await suite.rest("POST", paths.webhookEndpoints, body));
  created.push(id);
  return { id, path: `${paths.webhookEndpoints}/${id}`, secret, receiver };
}

async function revokeKey(fields: Json = {}): Promise<string> {
  const { keyId } = await issue(suite.rest, fields);
  await revoke(suite.rest, keyId);
  return keyId;
}

const deliveriesOf = async ({ path }: Endpoint): Promise<Json[]> =>
  succeeded(await suite.rest("GET", `${path}/deliveries`)).webhook_deliveries;

/** Returns the delivery of an endpoint when its state is this. */
const delivered = (endpoint: Endpoint, state: string): Promise<Json> =>
  vi.waitFor(async () => {
    const [delivery] = await deliveriesOf(endpoint);
    expect(delivery?.state).toBe(`WEBHOOK_DELIVERY_STATE_${state}`);
    return delivery;
  }, WITHIN);

test("an event that matches is received once, signed, as a CloudEvent of Standard Webhooks", async () => {
  const endpoint = await createEndpoint({ filter: 'actor_id="team_1"' });
  await revokeKey({ actor_id: "team_2" });
  const keyId = await revokeKey({ actor_id: "team_1" });
  const delivery = await delivered(endpoint, "SUCCEEDED");
  const { received } = endpoint.receiver;
  expect(received).toHaveLength(1);
  const [{ headers, text, body }] = received as [Receiver["received"][0]];
  expect(new Webhook(endpoint.secret).verify(text, headers)).toEqual(body);
  const data = {
    seq: Number(delivery.seq),
    key_id: keyId,
    actor_id: "team_1",
    resource_id: null,
    action: "key.revoked",
  };
  const event = succeeded(await suite.rest("GET", `${paths.auditEvents}/${delivery.seq}`));
  const time = new Date(event.time).toISOString();
  expect(body).toEqual({
    ...{ specversion: "1.0", id: delivery.delivery_id, source: "https://keys.example", type: "key.revoked" },
    ...{ time, timestamp: time, subject: keyId, data },
  });
  expect(headers["webhook-id"]).toBe(delivery.delivery_id);
  expect(delivery.attempts).toEqual([
    { time: expect.any(String), http_status: 204, error: "", duration: expect.stringMatching(/^\d+(\.\d+)?s$/) },
  ]);
});

test("admin_token.created selects the events by which a key has become an admin token", async () => {
  const endpoint = await createEndpoint({ event_types: ["admin_token.created"] });
  const both = await createEndpoint({ event_types: ["key.issued", "admin_token.created"] });
  const token = await issue(suite.rest, { scopes: ["read", "keyhold:keys.read"] });
  const key = await issue(suite.rest, { scopes: ["read"] });
  const change = async (fields: Json) =>
    succeeded(await suite.rest("PATCH", `${paths.issued}/${key.keyId}?update_mask=${Object.keys(fields)}`, fields));
  await change({ scopes: ["keyhold:audit"] });
  await change({ scopes: ["keyhold:audit", "keyhold:verify"] });
  await change({ scopes: ["read"] });
  await change({ scopes: ["keyhold:verify"] });
  const typesAt = ({ receiver }: Endpoint) =>
    receiver.received.map(({ body: { type, data } }) => `${type} ${data.action} ${data.key_id}`).sort();
  const updated = `admin_token.created key.updated ${key.keyId}`;
  await vi.waitFor(() => {
    expect(typesAt(endpoint)).toEqual([`admin_token.created key.issued ${token.keyId}`, updated, updated].sort());
    expect(typesAt(both)).toEqual(
      [`key.issued key.issued ${token.keyId}`, `key.issued key.issued ${key.keyId}`, updated, updated].sort(),
    );
  }, WITHIN);
});

test("an endpoint receives the checkpoint of the audit log each hour", async () => {
  const endpoint = await createEndpoint({ event_types: ["audit.checkpoint"] });
  await suite.sql`UPDATE audit_tree SET record_time = record_time - interval '1 hour'`;
  await delivered(endpoint, "SUCCEEDED");
  const { checkpoint, verifier_key } = succeeded(await suite.rest("GET", paths.auditCheckpoint));
  const [{ body }] = endpoint.receiver.received as [Receiver["received"][0]];
  const verifier = parseVerifierKey(verifier_key);
  expect(verifier && isSigned(body.data.checkpoint, verifier)).toBe(true);
  expect(parseCheckpoint(body.data.checkpoint)?.origin).toBe(parseCheckpoint(checkpoint)?.origin);
});

test("a server has 64 attempts in flight at most, and 4 for one endpoint", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<number>();
  const endpoints = await Promise.all(Array.from({ length: 17 }, () => createEndpoint({}, () => released)));
  const counts = () => endpoints.map(({ receiver }) => receiver.received.length);
  const total = () => counts().reduce((sum, count) => sum + count, 0);
  for (let keys = 0; keys < 5; keys++) await revokeKey();
  await vi.waitFor(() => expect(total()).toBe(64), WITHIN);
  await revokeKey();
  for (const endpoint of endpoints)
    await vi.waitFor(async () => expect(await deliveriesOf(endpoint)).toHaveLength(6), WITHIN);
  expect([total(), Math.max(...counts())]).toEqual([64, 4]);
  release(204);
  await vi.waitFor(() => expect(total()).toBe(17 * 6), WITHIN);
});

/** Makes the next attempt of all deliveries due. */
const makeDue = () =>
  suite.sql`UPDATE webhook_deliveries SET next_attempt_time = now() WHERE next_attempt_time > now()`;
const sendTest = async ({ path }: Endpoint): Promise<Json> =>
  succeeded(await suite.rest("POST", `${path}:sendTestEvent`, {}));
const read = async ({ path }: Endpoint): Promise<Json> => succeeded(await suite.rest("GET", path));
const update = (endpoint: Endpoint, mask: string, body: Json): Promise<Answer> =>
  suite.rest("PATCH", `${endpoint.path}?update_mask=${mask}`, body);
const attemptsOf = (endpoint: Endpoint, count: number): Promise<Json> =>
  vi.waitFor(async () => {
    const [delivery] = await deliveriesOf(endpoint);
    expect(delivery?.attempts).toHaveLength(count);
    return delivery;
  }, WITHIN);

test("a failed attempt is repeated with the same id and body, and then succeeds", async () => {
  const answers = [500, 302, 200];
  const endpoint = await createEndpoint({}, () => answers.shift() ?? 200);
  await sendTest(endpoint);
  for (const count of [1, 2]) {
    const delivery = await attemptsOf(endpoint, count);
    expect(delivery.state).toBe("WEBHOOK_DELIVERY_STATE_PENDING");
    await makeDue();
  }
  const { attempts, next_attempt_time } = await delivered(endpoint, "SUCCEEDED");
  expect(attempts.map(({ http_status }: Json) => http_status)).toEqual([200, 302, 500]);
  expect(next_attempt_time).toBeUndefined();
  const { received } = endpoint.receiver;
  expect(new Set(received.map(({ text, headers }) => `${headers["webhook-id"]} ${text}`)).size).toBe(1);
  expect(received).toHaveLength(3);
});

test("the second attempt is due after five seconds, or when Retry-After says", async () => {
  const wait = async (answering: Answering) => {
    const endpoint = await createEndpoint({}, answering);
    await sendTest(endpoint);
    const { attempts, next_attempt_time } = await attemptsOf(endpoint, 1);
    return (Date.parse(next_attempt_time) - Date.parse(attempts[0].time)) / 1000;
  };
  expect(await wait(() => 500)).toBeCloseTo(5.25, 0);
  const patient = await wait(() => ({ status: 503, headers: { "retry-after": "600" } }));
  expect(patient).toBeGreaterThanOrEqual(600);
  expect(patient).toBeLessThanOrEqual(661);
});

test("after ten attempts a delivery has failed, and can be requested again", async () => {
  let status = 500;
  const endpoint = await createEndpoint({}, () => status);
  const { delivery_id } = await sendTest(endpoint);
  await attemptsOf(endpoint, 1);
  await suite.sql`UPDATE webhook_deliveries SET attempts = 9, next_attempt_time = now() WHERE delivery_id = ${delivery_id}`;
  await delivered(endpoint, "FAILED");
  status = 200;
  succeeded(await suite.rest("POST", `${endpoint.path}/deliveries/${delivery_id}:redeliver`, {}));
  const { attempts } = await delivered(endpoint, "SUCCEEDED");
  expect(attempts.map(({ http_status }: Json) => http_status)).toEqual([200, 500, 500]);
});

/** Returns the events about an endpoint, with the method of their caller. */
async function changesOf({ id }: Endpoint): Promise<string[]> {
  const filter = encodeURIComponent(`resource_id="${id}"`);
  const { audit_events } = succeeded(await suite.rest("GET", `${paths.auditEvents}?order_by=seq&filter=${filter}`));
  return audit_events.map(({ action, caller }: Json) => `${action} ${caller.method}`);
}

test("410 disables the endpoint, with an event; enabled again, it receives what it has missed", async () => {
  let status = 410;
  const endpoint = await createEndpoint({}, () => status);
  await revokeKey();
  await delivered(endpoint, "FAILED");
  expect(await read(endpoint)).toMatchObject({ disabled: true, disable_reason: "gone" });
  expect(await suite.rest("POST", `${endpoint.path}:sendTestEvent`, {})).toMatchObject({ status: 409 });
  const missed = await revokeKey();
  status = 204;
  expect(succeeded(await update(endpoint, "disabled", { disabled: false }))).toMatchObject({
    disabled: false,
    disable_reason: "",
  });
  await vi.waitFor(() => expect(endpoint.receiver.received.at(-1)?.body.data.key_id).toBe(missed), WITHIN);
  expect(await changesOf(endpoint)).toEqual([
    "webhook_endpoint.created admin-token",
    "webhook_endpoint.disabled local",
    "webhook_endpoint.enabled admin-token",
  ]);
});

test("an update that changes nothing is no event", async () => {
  const endpoint = await createEndpoint({ filter: 'actor_id="team_1"' });
  const { url, event_types, filter, description, update_time } = await read(endpoint);
  const updates = { "url,event_types,filter,description": { url, event_types, filter, description } };
  for (const [mask, body] of Object.entries({ ...updates, disabled: { disabled: false } }))
    expect(succeeded(await update(endpoint, mask, body))).toMatchObject({ url, filter, update_time });
  const disabled = succeeded(await update(endpoint, "disabled", { disabled: true }));
  expect(succeeded(await update(endpoint, "disabled", { disabled: true }))).toEqual(disabled);
  const method = "admin-token";
  expect(await changesOf(endpoint)).toEqual([
    `webhook_endpoint.created ${method}`,
    `webhook_endpoint.disabled ${method}`,
  ]);
  expect(await update({ ...endpoint, path: `${paths.webhookEndpoints}/none` }, "url", { url })).toMatchObject({
    status: 404,
  });
});

test("an endpoint is disabled when all attempts of five days have failed, and not before", async () => {
  const endpoint = await createEndpoint({}, () => 500);
  await sendTest(endpoint);
  await attemptsOf(endpoint, 1);
  const failingFor = async (age: string, count: number) => {
    await suite.sql`UPDATE webhook_endpoints SET failing_since = now() - ${age}::text::interval WHERE endpoint_id = ${endpoint.id}`;
    await makeDue();
    await attemptsOf(endpoint, count);
    return read(endpoint);
  };
  expect(await failingFor("4 days 23 hours", 2)).toMatchObject({ disabled: false });
  expect(await failingFor("5 days 1 second", 3)).toMatchObject({ disabled: true, disable_reason: "failing" });
});

test("a success ends the days of failures", async () => {
  const endpoint = await createEndpoint();
  await suite.sql`UPDATE webhook_endpoints SET failing_since = now() - interval '6 days' WHERE endpoint_id = ${endpoint.id}`;
  await sendTest(endpoint);
  await delivered(endpoint, "SUCCEEDED");
  const [row] =
    await suite.sql`SELECT failing_since, disable_time FROM webhook_endpoints WHERE endpoint_id = ${endpoint.id}`;
  expect(row).toMatchObject({ failing_since: null, disable_time: null });
});

test("a slow endpoint has four requests in flight, and delays no other", async () => {
  const held = Promise.withResolvers<number>();
  const slow = await createEndpoint({}, () => held.promise);
  for (let count = 0; count < 10; count++) await sendTest(slow);
  await vi.waitFor(() => expect(slow.receiver.received).toHaveLength(4), WITHIN);
  const other = await createEndpoint();
  await sendTest(other);
  await delivered(other, "SUCCEEDED");
  expect(slow.receiver.received).toHaveLength(4);
  held.resolve(204);
  await vi.waitFor(() => expect(slow.receiver.received).toHaveLength(10), WITHIN);
});

test("an endpoint that is deleted while its receiver answers receives nothing more, and can be created again", async () => {
  const held = Promise.withResolvers<number>();
  const endpoint = await createEndpoint({}, () => held.promise);
  await sendTest(endpoint);
  await vi.waitFor(() => expect(endpoint.receiver.received).toHaveLength(1), WITHIN);
  expect(await suite.rest("DELETE", endpoint.path)).toMatchObject({ status: 200 });
  held.resolve(500);
  const fields = { endpoint_id: endpoint.id, url: endpoint.receiver.url, event_types: ["key.revoked"] };
  const { secret } = succeeded(await suite.rest("POST", paths.webhookEndpoints, fields));
  endpoint.receiver.answering = () => 204;
  const { delivery_id } = await sendTest(endpoint);
  await delivered(endpoint, "SUCCEEDED");
  const [, { text, headers, body }] = endpoint.receiver.received as [unknown, Receiver["received"][0]];
  expect(new Webhook(secret).verify(text, headers)).toEqual(body);
  expect(await deliveriesOf(endpoint)).toMatchObject([{ delivery_id, attempts: [{ http_status: 204 }] }]);
  expect(endpoint.receiver.received).toHaveLength(2);
  expect(suite.server.log()).not.toContain("could not be recorded");
});

/** Resolves when a statement like this one waits for a lock. */
const waitsFor = (statement: string): Promise<void> =>
  vi.waitFor(async () => {
    const waiting = await suite.sql`
      SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE ${statement}`;
    expect(waiting).toHaveLength(1);
  }, WITHIN);

test("a test event of an endpoint that is being deleted finds no endpoint", async () => {
  const endpoint = await createEndpoint();
  const { asked } = await suite.sql.begin(async (sql) => {
    await sql`DELETE FROM webhook_endpoints WHERE endpoint_id = ${endpoint.id}`;
    const asked = suite.rest("POST", `${endpoint.path}:sendTestEvent`, {});
    await waitsFor("%INSERT INTO webhook_deliveries%");
    return { asked };
  });
  expect(await asked).toMatchObject({ status: 404 });
});

test("the result of an attempt cannot deadlock with a deletion of the endpoint", async () => {
  const held = Promise.withResolvers<number>();
  const endpoint = await createEndpoint({}, () => held.promise);
  await sendTest(endpoint);
  await vi.waitFor(() => expect(endpoint.receiver.received).toHaveLength(1), WITHIN);
  await suite.sql.begin(async (sql) => {
    await sql`SELECT FROM webhook_endpoints WHERE endpoint_id = ${endpoint.id} FOR UPDATE`;
    held.resolve(500);
    await waitsFor("%webhook_attempts%");
    await sql`DELETE FROM webhook_endpoints WHERE endpoint_id = ${endpoint.id}`;
  });
  expect(await suite.rest("GET", endpoint.path)).toMatchObject({ status: 404 });
  const other = await createEndpoint();
  await sendTest(other);
  await delivered(other, "SUCCEEDED");
  expect(suite.server.log()).not.toContain("could not be recorded");
});

/** A receiver that answers a request with these bytes, and then disconnects. */
async function answerRaw(bytes: string, disconnect: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write(Buffer.from(bytes, "latin1"), () => disconnect(socket)));
  });
  const port = await listenLocally(server);
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${port}`;
}

const INVALID = "\xff\xfe\0\xc3\x28".repeat(2_000_000);
const FAILED = /^request failed: [A-Z_]+$/;

test.for<readonly [string, string, (socket: Socket) => void, number, RegExp]>([
  ["10 MB of invalid UTF-8", `HTTP/1.1 200 \xff\r\n\r\n${INVALID}`, (socket) => socket.end(), 200, /^$/],
  [
    "10 MB of invalid UTF-8 and an error",
    `HTTP/1.1 500 \xff\r\nx: \xff\r\n\r\n${INVALID}`,
    (socket) => socket.end(),
    500,
    /^HTTP 500$/,
  ],
  [
    "half of its body and a reset",
    "HTTP/1.1 503 Busy\r\ncontent-length: 9\r\n\r\nab",
    (socket) => socket.resetAndDestroy(),
    503,
    /^HTTP 503$/,
  ],
  ["half of its head and a reset", "HTTP/1.1 200 OK\r\ncontent-", (socket) => socket.resetAndDestroy(), 0, FAILED],
  ["half of its head and the end", "HTTP/1.1 200 OK\r\ncontent-", (socket) => socket.end(), 0, FAILED],
  ["only the end", "", (socket) => socket.end(), 0, FAILED],
])("an attempt is recorded when the receiver sends %s", async ([, bytes, disconnect, status, error]) => {
  const endpoint = await createEndpoint({ url: await answerRaw(bytes, disconnect) });
  await sendTest(endpoint);
  const { attempts } = await attemptsOf(endpoint, 1);
  expect(attempts).toMatchObject([{ http_status: status, error: expect.stringMatching(error) }]);
});

test("during the grace period of a rotation both secrets sign, afterwards the new one alone", async () => {
  const endpoint = await createEndpoint();
  const { secret } = succeeded(await suite.rest("POST", `${endpoint.path}:rotateSecret`, { grace_period: "1h" }));
  const signed = async (by: string) => {
    const { delivery_id } = await sendTest(endpoint);
    const find = () => endpoint.receiver.received.find(({ body }) => body.id === delivery_id);
    await vi.waitFor(() => expect(find()).toBeDefined(), WITHIN);
    const { text, headers } = find() as Receiver["received"][0];
    try {
      return new Webhook(by).verify(text, headers) !== null;
    } catch {
      return false;
    }
  };
  expect([await signed(secret), await signed(endpoint.secret)]).toEqual([true, true]);
  await suite.sql`UPDATE webhook_endpoints SET old_secret_expire_time = now() WHERE endpoint_id = ${endpoint.id}`;
  expect([await signed(secret), await signed(endpoint.secret)]).toEqual([true, false]);
});

test("a replay delivers the events again, those that are stored with the same id", async () => {
  const endpoint = await createEndpoint();
  const keyIds = [await revokeKey(), await revokeKey()];
  const idsOf = () => endpoint.receiver.received.map(({ body }) => `${body.data.key_id} ${body.id}`);
  await vi.waitFor(() => expect(idsOf()).toHaveLength(2), WITHIN);
  await delivered(endpoint, "SUCCEEDED");
  const before = idsOf();
  const first = Math.min(...endpoint.receiver.received.map(({ body }) => body.data.seq));
  expect(succeeded(await suite.rest("POST", `${endpoint.path}:replay`, { seq: String(first) }))).toMatchObject({
    next_seq: String(first),
  });
  await vi.waitFor(() => expect(idsOf()).toHaveLength(4), WITHIN);
  expect(idsOf().slice(2).sort()).toEqual(before.toSorted());
  expect(before.map((text) => text.split(" ")[0]).sort()).toEqual(keyIds.sort());
  const beyond = await suite.rest("POST", `${endpoint.path}:replay`, { seq: "900719925474099" });
  expect(beyond.body.error.details[0].reason).toBe("AUDIT_SEQ_OUT_OF_RANGE");
});

test("old deliveries are deleted with their attempts when they have ended", async () => {
  const endpoint = await createEndpoint();
  const { delivery_id } = await sendTest(endpoint);
  await delivered(endpoint, "SUCCEEDED");
  await suite.sql`UPDATE webhook_deliveries SET create_time = now() - interval '31 days' WHERE delivery_id = ${delivery_id}`;
  await vi.waitFor(async () => expect(await deliveriesOf(endpoint)).toEqual([]), { timeout: 20_000, interval: 200 });
});

test.for<[string, Json, string, string]>([
  ["url", { url: "http://10.0.0.1/" }, "url", "VALUE_NOT_ALLOWED"],
  ["event type", { event_types: ["key.revoke"] }, "event_types[0]", "VALUE_NOT_ALLOWED"],
  ["filter", { filter: "nothing = 1" }, "filter", "INVALID_FORMAT"],
])("an invalid %s is rejected, in a creation and in an update", async ([, fields, field, reason]) => {
  const endpoint = await createEndpoint();
  const body = { endpoint_id: randomUUID(), url: "https://hooks.invalid", event_types: ["*"], ...fields };
  const violations = ({ body }: Answer) => body.error.details.flatMap((one: Json) => one.field_violations ?? []);
  const created = await suite.rest("POST", paths.webhookEndpoints, body);
  expect(violations(created)).toEqual([{ field, description: expect.any(String), reason }]);
  const updated = await suite.rest("PATCH", endpoint.path, fields);
  const expected = field === "filter" ? field : `webhook_endpoint.${field}`;
  expect(violations(updated)).toEqual([{ field: expected, description: expect.any(String), reason }]);
});

test("no secret is in a table in clear, in an event or in the log", async () => {
  const endpoint = await createEndpoint({ event_types: ["*"] });
  const rotated = succeeded(await suite.rest("POST", `${endpoint.path}:rotateSecret`, { grace_period: "1h" }));
  await sendTest(endpoint);
  await delivered(endpoint, "SUCCEEDED");
  const tables = await suite.sql<{ text: string }[]>`
    SELECT row_to_json(e)::text AS text FROM webhook_endpoints e UNION ALL SELECT row_to_json(d)::text FROM webhook_deliveries d
    UNION ALL SELECT row_to_json(a)::text FROM webhook_attempts a UNION ALL SELECT row_to_json(a)::text FROM audit_events a
    UNION ALL SELECT row_to_json(a)::text FROM audit_pending a`;
  const everything = tables.map(({ text }) => text).join("\n") + suite.server.log();
  expect(everything).toContain(endpoint.id);
  for (const secret of [endpoint.secret, rotated.secret]) {
    const base64 = secret.slice("whsec_".length);
    expect(everything).not.toContain(base64);
    expect(everything).not.toContain(Buffer.from(base64, "base64").toString("hex"));
  }
});
