import { createHash, randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { nodeName } from "../../src/lib/node-name.ts";
import { replayAuditLog, type StoredEvent } from "../support/audit-replay.ts";
import { newRawKey, succeeded, table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { adopted, hmacOf, importHashed, scryptOf, sha256Of } from "../support/hashed-keys.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited, lockRow, lockTable } from "../support/locked-row.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { atOnce } from "../support/races.ts";
import { type Answer, type Json, paths, restClient } from "../support/rest.ts";
import { Secrets } from "../support/secrets.ts";

/** Each change has one event, with its caller. The last tests read the events of all others. */

const CLIENT = "203.0.113.7";
const USER_AGENT = "audit test/1.0";
const HMAC_KEY = "the key of another system's HMACs";

const suite = useGuardedService(() => ({ KEYHOLD_TRUSTED_PROXIES: "127.0.0.1" }));
const secrets = new Secrets();

/** A caller with an admin token. */
interface Caller {
  readonly keyId: string;
  readonly secret: string;
}

let alice: Caller;
let bob: Caller;

beforeAll(async () => {
  secrets.add(HMAC_KEY, "the key of HMACs");
  const admin = { keyId: "", secret: suite.token("keyhold:admin") };
  alice = await issue({ scopes: ["keyhold:admin"] }, admin);
  bob = await issue({ scopes: ["keyhold:admin"] }, admin);
});

interface Call {
  readonly method?: string;
  readonly path: string;
  readonly body?: Json;
}

interface Sent {
  readonly callId: string;
  readonly answer: Answer;
}

/** Sends a call through a trusted proxy. */
async function send({ method = "POST", path, body }: Call, caller: Caller | null = alice): Promise<Sent> {
  const callId = randomUUID();
  const headers = {
    ...(caller === null ? {} : bearer(caller.secret)),
    ...{ "x-request-id": callId, "x-forwarded-for": CLIENT, "user-agent": USER_AGENT, connection: "close" },
  };
  const answer = await restClient(suite.server)(method, path, body, headers);
  if (answer.body?.secret !== undefined) secrets.add(answer.body.secret, `the secret that ${path} returned`);
  return { callId, answer };
}

const FIELDS = { name: "a key", actor_id: "actor_1" };

const issuance = (fields: Json = {}): Call => ({ path: paths.issued, body: { ...FIELDS, ...fields } });
const importing = (fields: Json = {}): Call => ({
  path: paths.imported,
  body: { ...FIELDS, raw_key: rawKey(), ...fields },
});
const verbOf = (keyId: string, verb: string, body: Json = {}): Call => ({
  path: `${paths.keys}/${keyId}:${verb}`,
  body,
});

const endpoint = (endpoint_id: string) => ({
  ...{ endpoint_id, url: "https://hooks.invalid", event_types: ["signing_key.rotated"] },
});

/** Returns a change of a new webhook endpoint. */
async function onEndpoint(id: string, method: string, target: string, body: Json, before: Json, after: Json) {
  succeeded((await send({ path: paths.webhookEndpoints, body: endpoint(id) })).answer);
  const path = `${paths.webhookEndpoints}/${id}${target}`;
  return { method, path, body, resourceId: id, before: row(before), after: row(after) };
}

function rawKey(): string {
  const raw = secrets.add(newRawKey(), "a raw key");
  for (const encoding of ["hex", "base64"] as const)
    secrets.add(createHash("sha256").update(raw).digest(encoding), "the hash of a raw key");
  return raw;
}

async function issue(fields?: Json, caller = alice): Promise<Caller> {
  const { secret, issued_api_key } = succeeded((await send(issuance(fields), caller)).answer);
  return { keyId: issued_api_key.key_id, secret };
}

async function importOne(fields?: Json): Promise<string> {
  return succeeded((await send(importing(fields))).answer).key_id;
}

/** Returns the events of a call, in the order of the log. */
async function eventsOf(callId: string): Promise<StoredEvent[]> {
  const { events } = await replayAuditLog(suite.sql);
  return events.filter(({ call }) => call.call_id === callId);
}

/** Returns the record of a call of this caller. */
function callOf({ keyId }: Caller, callId: string, rpc: string) {
  const caller = { caller: `admin-token:${keyId}`, method: "admin-token", subject: keyId, key_id: keyId };
  return { ...caller, ...addresses(callId), rpc: `keyhold.v2alpha1.${rpc}` };
}

function addresses(callId: string) {
  return { peer_ip: "127.0.0.1", client_ip: CLIENT, user_agent: USER_AGENT, call_id: callId, node: nodeName() };
}

/** A call with the expected event. */
interface Change extends Call {
  /** Default: that of the response. */
  readonly keyId?: string;
  readonly resourceId?: string;
  readonly requestId?: string;
  readonly before: Json;
  readonly after: Json;
}

/** Returns columns that an update has changed. */
const changed = (columns: Json) => ({ update_time: expect.any(String), ...columns });
const row = (columns: Json) => expect.objectContaining(columns);
const [TEXT, NUMBER] = [expect.any(String), expect.any(Number)];
const REASON = "REVOCATION_REASON_KEY_COMPROMISE";

const CHANGES: readonly (readonly [action: string, rpc: string, prepare: () => Promise<Change> | Change])[] = [
  [
    "key.issued",
    "IssuedApiKeysService/CreateIssuedApiKey",
    () => {
      const [requestId, columns] = [randomUUID(), { ...FIELDS, scopes: ["a"], metadata: { b: "c" } }];
      const after = row({ ...columns, kind: "issued", created_by: `admin-token:${alice.keyId}` });
      return { ...issuance({ ...columns, request_id: requestId }), requestId, before: null, after };
    },
  ],
  [
    "key.updated",
    "IssuedApiKeysService/UpdateIssuedApiKey",
    async () => {
      const { keyId } = await issue({ scopes: ["a"] });
      const body = { name: "another", scopes: ["b"] };
      const path = `${paths.issued}/${keyId}`;
      return {
        method: "PATCH",
        path,
        body,
        keyId,
        before: changed({ name: "a key", scopes: ["a"] }),
        after: changed(body),
      };
    },
  ],
  ...[{}, { grace_period: "1h" }].map(
    (body) =>
      [
        "key.rotated",
        "IssuedApiKeysService/RotateIssuedApiKey",
        async () => {
          const { keyId } = await issue();
          const [before, after] = [
            { rotate_time: null, secret_version: NUMBER, digest_key_id: TEXT, hint: TEXT },
            { rotate_time: TEXT, secret_version: NUMBER, digest_key_id: TEXT, hint: TEXT },
          ].map(changed);
          return { path: `${paths.issued}/${keyId}:rotate`, body, keyId, before, after };
        },
      ] as const,
  ),
  [
    "key.disabled",
    "ApiKeysService/DisableApiKey",
    async () => {
      const { keyId } = await issue();
      const before = changed({ disable_time: null, disable_reason: null, disabled_by: null });
      const after = changed({ disable_time: TEXT, disable_reason: "suspected leak", disabled_by: TEXT });
      return { ...verbOf(keyId, "disable", { reason: "suspected leak" }), keyId, before, after };
    },
  ],
  [
    "key.enabled",
    "ApiKeysService/EnableApiKey",
    async () => {
      const keyId = await importOne();
      await send(verbOf(keyId, "disable"));
      return {
        ...verbOf(keyId, "enable"),
        keyId,
        before: changed({ disable_time: TEXT, disable_reason: null, disabled_by: TEXT }),
        after: changed({ disable_time: null, disable_reason: null, disabled_by: null }),
      };
    },
  ],
  [
    "key.revoked",
    "ApiKeysService/RevokeApiKey",
    async () => {
      const keyId = await importOne();
      const before = changed({
        revoke_time: null,
        revocation_reason: null,
        revocation_description: null,
        revoked_by: null,
      });
      const after = changed({
        ...{ revoke_time: TEXT, revocation_reason: REASON, revocation_description: null, revoked_by: TEXT },
      });
      return { ...verbOf(keyId, "revoke", { reason: REASON }), keyId, before, after };
    },
  ],
  [
    "key.imported",
    "ImportedApiKeysService/CreateImportedApiKey",
    () => ({ ...importing(), before: null, after: row({ ...FIELDS, kind: "imported" }) }),
  ],
  [
    "key.updated",
    "ImportedApiKeysService/UpdateImportedApiKey",
    async () => {
      const keyId = await importOne();
      const path = `${paths.imported}/${keyId}`;
      const [before, after] = [{ metadata: {} }, { metadata: { a: "b" } }].map(changed);
      return { method: "PATCH", path, body: { metadata: { a: "b" } }, keyId, before, after };
    },
  ],
  [
    "key.deleted",
    "ImportedApiKeysService/DeleteImportedApiKey",
    async () => {
      const keyId = await importOne();
      return {
        method: "DELETE",
        path: `${paths.imported}/${keyId}`,
        keyId,
        before: row({ ...FIELDS, key_id: keyId }),
        after: null,
      };
    },
  ],
  [
    "hmac_key.created",
    "HmacKeysService/CreateHmacKey",
    () => {
      const body = { hmac_key_id: "h1", key: HMAC_KEY, encoding: "TEXT_ENCODING_UTF8" };
      return { path: paths.hmacKeys, body, resourceId: "h1", before: null, after: row({ hmac_key_id: "h1" }) };
    },
  ],
  [
    "hmac_key.deleted",
    "HmacKeysService/DeleteHmacKey",
    async () => {
      const body = { hmac_key_id: "h2", key: HMAC_KEY, encoding: "TEXT_ENCODING_UTF8" };
      await send({ path: paths.hmacKeys, body });
      const path = `${paths.hmacKeys}/h2`;
      return { method: "DELETE", path, resourceId: "h2", before: row({ hmac_key_id: "h2" }), after: null };
    },
  ],
  [
    "webhook_endpoint.created",
    "WebhookEndpointsService/CreateWebhookEndpoint",
    () => {
      const body = endpoint("w1");
      const { endpoint_id: resourceId } = body;
      return { path: paths.webhookEndpoints, body, resourceId, before: null, after: row(body) };
    },
  ],
  [
    "webhook_endpoint.updated",
    "WebhookEndpointsService/UpdateWebhookEndpoint",
    () => onEndpoint("w2", "PATCH", "", { description: "new" }, { description: "" }, { description: "new" }),
  ],
  [
    "webhook_endpoint.disabled",
    "WebhookEndpointsService/UpdateWebhookEndpoint",
    () =>
      onEndpoint(
        ...(["w3", "PATCH", "?update_mask=disabled", { disabled: true }] as const),
        { disable_time: null, disable_reason: null },
        { disable_time: expect.any(String), disable_reason: "caller" },
      ),
  ],
  [
    "webhook_endpoint.secret_rotated",
    "WebhookEndpointsService/RotateWebhookEndpointSecret",
    () =>
      onEndpoint(
        ...(["w4", "POST", ":rotateSecret", { grace_period: "1h" }] as const),
        { secret_rotate_time: null },
        { secret_rotate_time: expect.any(String) },
      ),
  ],
  [
    "webhook_endpoint.replayed",
    "WebhookEndpointsService/ReplayWebhookEvents",
    () => onEndpoint("w5", "POST", ":replay", { seq: "0" }, { next_seq: expect.any(Number) }, { next_seq: 0 }),
  ],
  [
    "webhook_endpoint.deleted",
    "WebhookEndpointsService/DeleteWebhookEndpoint",
    async () => ({ ...(await onEndpoint("w6", "DELETE", "", undefined, endpoint("w6"), {})), after: null }),
  ],
];

test.each(table(CHANGES))("%s by %s", async (action, rpc, prepare) => {
  const { keyId, resourceId = null, requestId, before, after, ...call } = await prepare();
  const { callId, answer } = await send(call);
  const { issued_api_key, key_id } = succeeded(answer);
  const expectedId = resourceId === null ? (keyId ?? issued_api_key?.key_id ?? key_id) : null;
  const expectedCall = { ...callOf(alice, callId, rpc), ...(requestId !== undefined && { request_id: requestId }) };
  expect(await eventsOf(callId)).toEqual([
    { seq: expect.any(Number), action, keyId: expectedId, resourceId, call: expectedCall, before, after },
  ]);
});

test("a key that revokes itself is the caller", async () => {
  const { keyId, secret } = await issue();
  const { callId } = await send({ path: paths.selfRevoke, body: { credential: secret } }, null);
  const caller = { caller: `secret:${keyId}`, method: "secret", subject: keyId, key_id: keyId };
  const rpc = "keyhold.v2alpha1.SelfServiceService/SelfRevokeApiKey";
  expect(await eventsOf(callId)).toMatchObject([
    { action: "key.revoked", keyId, call: { ...caller, rpc, ...addresses(callId) } },
  ]);
});

const HASHES: readonly (readonly [name: string, hashOf: (raw: string) => Json])[] = [
  ["SHA-256", sha256Of],
  ["HMAC", (raw) => hmacOf(raw, "h1", HMAC_KEY)],
  ["scrypt", (raw) => scryptOf(raw, 20, 14)],
];

test.each(table(HASHES))(
  "the first verification of a key by its %s has the event of its adoption",
  async (_, hashOf) => {
    const raw = rawKey();
    const { keyId } = await importHashed(suite.rest, {}, raw, hashOf(raw));
    const { callId, answer } = await send({ path: `${paths.keys}:verify`, body: { credential: raw } }, bob);
    expect(succeeded(answer).is_valid).toBe(true);
    await adopted(suite.rest, keyId);
    expect(await eventsOf(callId)).toMatchObject([
      { action: "key.adopted", keyId, call: callOf(bob, callId, "ApiKeysService/VerifyApiKey") },
    ]);
  },
);

// From 100 rows on by COPY.
test.each([3, 150])("a batch of %d imports has an event for each key", async (count) => {
  const requestIds = Array.from({ length: count }, () => randomUUID());
  const requests = requestIds.map((request_id) => ({ ...importing({ request_id }).body }));
  const { callId, answer } = await send({ path: `${paths.imported}:batchCreate`, body: { requests } });
  const ids: string[] = succeeded(answer).results.map(({ imported_api_key }: Json) => imported_api_key.key_id);
  const events = await eventsOf(callId);
  const call = callOf(alice, callId, "ImportedApiKeysService/BatchCreateImportedApiKeys");
  const expected = ids.map((keyId, place) => ({
    ...{ action: "key.imported", keyId, call: { ...call, request_id: requestIds[place] } },
  }));
  expect(sorted(events)).toMatchObject(sorted(expected));
  expect(events).toHaveLength(count);
  const repeated = await send({ path: `${paths.imported}:batchCreate`, body: { requests } });
  succeeded(repeated.answer);
  expect(await eventsOf(repeated.callId)).toEqual([]);
});

function sorted<T extends { readonly keyId: string | null }>(events: readonly T[]): T[] {
  return events.toSorted((a, b) => (`${a.keyId}` < `${b.keyId}` ? -1 : 1));
}

test.each([
  ["key.disabled", "bulkDisable", "BulkDisableApiKeys", { reason: "leak" }],
  ["key.revoked", "bulkRevoke", "BulkRevokeApiKeys", { reason: REASON }],
])("%s by %s has an event for each key", async (action, verb, rpc, fields) => {
  const actor_id = randomUUID();
  const ids = await atOnce(5, () => importOne({ actor_id }));
  const body = { filter: `actor_id="${actor_id}"`, request_id: randomUUID(), ...fields };
  const { callId, answer } = await send({ path: `${paths.keys}:${verb}`, body });
  expect(succeeded(answer)).toMatchObject({ done: true });
  const call = { ...callOf(alice, callId, `ApiKeysService/${rpc}`), request_id: body.request_id };
  const expected = ids.map((keyId) => ({ action, keyId, call }));
  const events = await eventsOf(callId);
  expect(sorted(events)).toMatchObject(sorted(expected));
  expect(events).toHaveLength(ids.length);
});

test("a revocation with descendants has an event for each key", async () => {
  const parent = await issue({ scopes: ["keyhold:keys.write"] });
  const child = await issue({ scopes: ["keyhold:keys.write"] }, parent);
  const grandchild = await issue({}, child);
  const { callId } = await send(verbOf(parent.keyId, "revoke", { reason: REASON, include_descendants: true }));
  const call = callOf(alice, callId, "ApiKeysService/RevokeApiKey");
  const expected = [parent, child, grandchild].map(({ keyId }) => ({ action: "key.revoked", keyId, call }));
  const events = await eventsOf(callId);
  expect(sorted(events)).toMatchObject(sorted(expected));
  expect(events).toHaveLength(3);
});

/** Calls that change nothing when they are repeated, and the status of the repetition. */
const REPEATED: readonly (readonly [name: string, prepare: () => Promise<Call> | Call, status: number])[] = [
  ["a request_id", () => issuance({ request_id: randomUUID() }), 200],
  ["a disabling", async () => verbOf(await importOne(), "disable"), 200],
  ["a revocation", async () => verbOf(await importOne(), "revoke"), 409],
  ["an import", () => importing(), 409],
];

test.each(table(REPEATED))("%s that is repeated has no further event", async (_, prepare, status) => {
  const call = await prepare();
  expect(await eventsOf((await send(call)).callId)).toHaveLength(1);
  const { answer, callId } = await send(call);
  expect(answer.status).toBe(status);
  expect(await eventsOf(callId)).toEqual([]);
});

test("a preview and a verification have no events, and a denied call changes nothing", async () => {
  const preview = { path: `${paths.keys}:bulkRevoke`, body: { filter: 'actor_id="actor_1"', validate_only: true } };
  const verification = { path: `${paths.keys}:verify`, body: { credential: (await issue()).secret } };
  const denied = verbOf(await importOne(), "revoke");
  const sent = [await send(preview), await send(verification), await send(denied, null)];
  expect(sent.map(({ answer }) => answer.status)).toEqual([200, 200, 401]);
  const actions = await Promise.all(
    sent.map(async ({ callId }) => (await eventsOf(callId)).map(({ action }) => action)),
  );
  expect(actions.flat().filter((action) => action !== "call.denied")).toEqual([]);
});

/** Calls that are made concurrently. */
const CONCURRENT: readonly (readonly [name: string, prepare: () => Promise<Call>])[] = [
  ["creations in one statement", async () => issuance()],
  ["imports in one statement", async () => importing()],
  ["changes in one transaction", async () => verbOf(await importOne(), "disable")],
];

test.each(table(CONCURRENT))("concurrent %s have their own callers", async (_, prepare) => {
  const calls = await atOnce(40, prepare);
  const callerAt = (place: number) => (place % 2 === 0 ? alice : bob);
  // The others gather behind the first.
  const release = await lockTable(suite.sql, "audit_pending");
  const sending = calls.map((call, place) => send(call, callerAt(place)));
  await eventually(() => isAwaited(suite.sql));
  await release();
  const sent = await Promise.all(sending);
  const ids: string[] = sent.map(({ answer }) => {
    const body = succeeded(answer);
    return body.issued_api_key?.key_id ?? body.key_id;
  });
  const [transactions] = await suite.sql`
    SELECT count(DISTINCT xmin::text)::int AS count FROM api_keys WHERE key_id = ANY (${ids}::uuid[])`;
  expect(transactions?.count).toBeLessThan(calls.length);
  const { events } = await replayAuditLog(suite.sql);
  for (const [place, { callId }] of sent.entries()) {
    const own = events.filter(({ call }) => call.call_id === callId);
    expect(own).toMatchObject([{ keyId: ids[place], call: { caller: `admin-token:${callerAt(place).keyId}` } }]);
  }
});

test("an adoption after its client has disconnected has the address of the client", async () => {
  const raws = Array.from({ length: 4 }, rawKey);
  const keys = await Promise.all(raws.map((raw) => importHashed(suite.rest, {}, raw)));
  const release = await lockTable(suite.sql, "audit_pending");
  const client = grpcProtocol("gRPC", suite.server.address);
  const headers = { ...bearer(bob.secret), "x-forwarded-for": CLIENT };
  for (const raw of raws)
    expect(await client.call(ApiKeysService.method.verifyApiKey, { credential: raw }, headers)).toMatchObject({
      ok: true,
    });
  client.close();
  await release();
  await Promise.all(keys.map(({ keyId }) => adopted(suite.rest, keyId)));
  const { events } = await replayAuditLog(suite.sql);
  for (const { keyId } of keys)
    expect(events.filter((event) => event.action === "key.adopted" && event.keyId === keyId)).toMatchObject([
      { call: { caller: `admin-token:${bob.keyId}`, peer_ip: "127.0.0.1", client_ip: CLIENT } },
    ]);
});

test("a change after its client has disconnected has the address of the client", async () => {
  const keyId = await importOne();
  const locked = await lockRow(suite.sql, keyId);
  const callId = randomUUID();
  const headers = {
    ...bearer(alice.secret),
    "x-request-id": callId,
    "x-forwarded-for": CLIENT,
    "user-agent": USER_AGENT,
  };
  const aborted = new AbortController();
  const path = `${suite.server.url}${paths.keys}/${keyId}:disable`;
  const answer = fetch(path, { method: "POST", headers, signal: aborted.signal }).catch((error: unknown) => error);
  await eventually(() => isAwaited(suite.sql));
  aborted.abort();
  expect(await answer).toBeInstanceOf(Error);
  await locked.release();
  await eventually(async () => (await eventsOf(callId)).length > 0);
  expect(await eventsOf(callId)).toMatchObject([
    { action: "key.disabled", keyId, call: callOf(alice, callId, "ApiKeysService/DisableApiKey") },
  ]);
});

test("the log of all tests describes the tables", async () => {
  const { events, violations } = await replayAuditLog(suite.sql);
  expect(violations).toEqual([]);
  expect(events.length).toBeGreaterThan(300);
});

test("no event contains a secret, a raw key, a digest or a hash", async () => {
  const stored = await suite.sql`
    SELECT encode(digest, 'hex') AS digest FROM api_keys UNION ALL
    SELECT secret ->> 'digest' FROM api_keys, jsonb_array_elements(previous_secrets || coalesce(other_digests, '[]')) AS secret UNION ALL
    SELECT encode(wrapped, 'hex') FROM signing_keys UNION ALL
    SELECT encode(wrapped_key, 'hex') FROM hmac_keys`;
  expect(stored.length).toBeGreaterThan(300);
  for (const { digest } of stored) {
    secrets.add(digest, "a digest");
    secrets.add(Buffer.from(digest, "hex").toString("base64"), "a digest in base64");
  }
  const rows = await suite.sql`
    SELECT event::text AS text FROM audit_events AS event UNION ALL SELECT event::text FROM audit_pending AS event`;
  expect(secrets.foundIn(rows.map(({ text }) => text).join("\n"))).toEqual([]);
});
