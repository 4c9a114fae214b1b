import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { derive, importKey, revoke, succeeded } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { importMany, verdictsOf } from "../support/many-keys.ts";
import { issue, type Json, paths, type RestClient, verify } from "../support/rest.ts";

const suite = useGuardedService();

const REVOKED = "VERIFICATION_ERROR_REVOKED";
const DISABLED = "VERIFICATION_ERROR_DISABLED";

const send = (body: Json, verb = "bulkRevoke", rest: RestClient = suite.rest) =>
  rest("POST", `${paths.keys}:${verb}`, body);

/** Repeats a call until the operation is done, and returns the last response. */
async function complete(body: Json, verb = "bulkRevoke", rest: RestClient = suite.rest): Promise<Json> {
  for (let last: Json = {}; ; ) {
    const id = last.request_id === undefined ? {} : { request_id: last.request_id };
    last = succeeded(await send({ ...body, ...id }, verb, rest));
    if (last.done) return last;
  }
}

const newActor = () => `actor-${randomUUID()}`;
const ofActor = (actor: string) => `actor_id="${actor}"`;

interface Row {
  readonly key_id: string;
  readonly revoke_time: Date | null;
  readonly update_time: Date;
}

const rowsOf = (actor: string) =>
  suite.sql<Row[]>`SELECT key_id, revoke_time, update_time FROM api_keys WHERE actor_id = ${actor} ORDER BY key_id`;

test("every matching key of both kinds is revoked, with its tokens, and no other", async () => {
  const [actor, other] = [newActor(), newActor()];
  const issued = await issue(suite.rest, { actor_id: actor });
  const token = await derive(suite.rest, issued.secret);
  const spared = await issue(suite.rest, { actor_id: other });
  const rawKeys = await importMany(suite.rest, 250, { actor_id: actor });
  expect(await verdictsOf(suite.rest, [issued.secret, token.token, ...rawKeys])).toEqual({ valid: 252 });
  const reason = "REVOCATION_REASON_AFFILIATION_CHANGED";
  const done = await complete({ filter: ofActor(actor), reason, revocation_description: "the end" });
  expect(done).toEqual({ matched_count: 251, changed_count: 251, done: true, request_id: expect.any(String) });
  expect(await verdictsOf(suite.rest, [issued.secret, token.token, ...rawKeys])).toEqual({ [REVOKED]: 252 });
  expect(await verify(suite.rest, spared.secret)).toMatchObject({ is_valid: true });
  const { body } = await suite.rest("GET", `${paths.issued}/${issued.keyId}`);
  expect(body).toMatchObject({ revocation_reason: reason, revocation_description: "the end" });
  expect(body.update_time).toBe(body.revoke_time);
});

test("a repeat with the request id changes nothing and returns the same", async () => {
  const actor = newActor();
  await importMany(suite.rest, 20, { actor_id: actor });
  const request = { filter: ofActor(actor), request_id: randomUUID(), expected_count: 20 };
  const first = succeeded(await send(request));
  const rows = await rowsOf(actor);
  await importMany(suite.rest, 1, { actor_id: actor });
  expect(succeeded(await send(request))).toEqual(first);
  expect((await rowsOf(actor)).slice(0, 20)).toEqual(rows);
  expect((await rowsOf(actor)).filter((row) => row.revoke_time === null)).toHaveLength(1);
});

test("a request id of another operation, reason, verb or caller is rejected", async () => {
  const actor = newActor();
  const request_id = randomUUID();
  await send({ filter: ofActor(actor), request_id });
  const others: [Json, string?, RestClient?][] = [
    [{ filter: ofActor(newActor()) }],
    [{ filter: ofActor(actor), reason: "REVOCATION_REASON_SUPERSEDED" }],
    [{ filter: ofActor(actor), revocation_description: "why" }],
    [{ filter: ofActor(actor) }, "bulkDisable"],
    [{ filter: ofActor(actor) }, "bulkRevoke", suite.as(suite.token("keyhold:keys.revoke"))],
  ];
  for (const [body, verb, rest] of others) {
    const answer = await send({ ...body, request_id }, verb, rest);
    expect([answer.status, answer.body.error.details[0].reason]).toEqual([409, "REQUEST_ID_REUSED"]);
  }
});

test("validate_only counts, and another number than expected_count changes nothing", async () => {
  const actor = newActor();
  const rawKeys = await importMany(suite.rest, 3, { actor_id: actor });
  const counted = { matched_count: 3, changed_count: 0, done: false, request_id: "" };
  for (const verb of ["bulkRevoke", "bulkDisable"]) {
    expect(succeeded(await send({ filter: ofActor(actor), validate_only: true }, verb))).toEqual(counted);
    for (const more of [{}, { validate_only: true }, { request_id: randomUUID() }]) {
      const { status, body } = await send({ filter: ofActor(actor), expected_count: 4, ...more }, verb);
      expect([status, body.error.status, body.error.message]).toEqual([
        ...[409, "FAILED_PRECONDITION", "matching keys: 3, expected: 4; nothing was changed"],
      ]);
    }
  }
  expect(await verdictsOf(suite.rest, rawKeys)).toEqual({ valid: 3 });
  const none = { filter: ofActor(newActor()), expected_count: 0 };
  expect(succeeded(await send(none))).toMatchObject({ matched_count: 0, changed_count: 0, done: true });
});

test.for(["", "   ", "\n"])("the filter %j is rejected", async (filter) => {
  for (const verb of ["bulkRevoke", "bulkDisable"]) {
    const { status, body } = await send({ filter }, verb);
    expect([status, body.error.details[1].field_violations[0]]).toEqual([
      400,
      expect.objectContaining({ field: "filter", reason: "FIELD_REQUIRED" }),
    ]);
  }
});

test("bulkDisable disables active keys only, with the reason", async () => {
  const actor = newActor();
  const rawKeys = await importMany(suite.rest, 5, { actor_id: actor });
  const revoked = await importKey(suite.rest, { actor_id: actor });
  await revoke(suite.rest, revoked.keyId);
  const request = { filter: ofActor(actor), reason: "unpaid" };
  expect(await complete(request, "bulkDisable")).toMatchObject({ matched_count: 5, changed_count: 5 });
  expect(await verdictsOf(suite.rest, [...rawKeys, revoked.rawKey])).toEqual({ [DISABLED]: 5, [REVOKED]: 1 });
  expect(await complete(request, "bulkDisable")).toMatchObject({ matched_count: 0, changed_count: 0 });
  const rows =
    await suite.sql`SELECT DISTINCT disable_reason FROM api_keys WHERE actor_id = ${actor} AND revoke_time IS NULL`;
  expect(rows).toMatchObject([{ disable_reason: "unpaid" }]);
  expect(await complete({ filter: ofActor(actor) })).toMatchObject({ matched_count: 5, changed_count: 5 });
});

test("bulkDisable is refused while a server that does not know disabled keys has a lease, and continues later", async () => {
  const actor = newActor();
  const rawKeys = await importMany(suite.rest, 2, { actor_id: actor });
  await suite.sql`
    INSERT INTO nodes (lease_id, name, version, ttl_ms) VALUES (gen_random_uuid(), 'old:1', '0.1.0', 30000)`;
  onTestFinished(async () => {
    await suite.sql`DELETE FROM nodes WHERE name = 'old:1'`;
  });
  const request = { filter: ofActor(actor), request_id: randomUUID() };
  const { status, body } = await send(request, "bulkDisable");
  expect([status, body.error.details[0]]).toMatchObject([
    409,
    { reason: "SERVERS_OUTDATED", metadata: { servers: "old:1 (0.1.0)" } },
  ]);
  await suite.sql`DELETE FROM nodes WHERE name = 'old:1'`;
  expect(await verdictsOf(suite.rest, rawKeys)).toEqual({ valid: 2 });
  expect(await complete(request, "bulkDisable")).toMatchObject({ matched_count: 2, changed_count: 2 });
});

test("concurrent calls of one operation, and operations on the same keys, change each key once", async () => {
  const actor = newActor();
  const rawKeys = await importMany(suite.rest, 600, { actor_id: actor });
  const shared = { filter: ofActor(actor), request_id: randomUUID() };
  const all = await Promise.all([complete(shared), complete(shared), complete(shared)]);
  for (const one of all)
    expect(one).toEqual({ matched_count: 600, changed_count: 600, done: true, request_id: shared.request_id });
  expect(await verdictsOf(suite.rest, rawKeys)).toEqual({ [REVOKED]: 600 });
  const second = newActor();
  await importMany(suite.rest, 600, { actor_id: second });
  const apart = await Promise.all([1, 2, 3].map(() => complete({ filter: ofActor(second) })));
  expect(apart.reduce((sum, { changed_count }) => sum + changed_count, 0)).toBe(600);
});

test("a caller changes only keys whose Keyhold scopes it holds, and never its own", async () => {
  const actor = newActor();
  const own = await issue(suite.rest, { actor_id: actor, scopes: ["keyhold:keys.revoke"] });
  const admin = await issue(suite.rest, { actor_id: actor, scopes: ["keyhold:admin"] });
  const [plain] = await importMany(suite.rest, 1, { actor_id: actor });
  const peer = await issue(suite.rest, { actor_id: actor, scopes: ["keyhold:keys.revoke"] });
  const done = await complete({ filter: ofActor(actor) }, "bulkRevoke", suite.as(own.secret));
  expect(done).toMatchObject({ matched_count: 2, changed_count: 2 });
  expect(await verdictsOf(suite.rest, [own.secret, admin.secret])).toEqual({ valid: 2 });
  expect(await verdictsOf(suite.rest, [plain ?? "", peer.secret])).toEqual({ [REVOKED]: 2 });
});

test("now() is that of the first call, also when the operation continues", async () => {
  const actor = newActor();
  const [rawKey = ""] = await importMany(suite.rest, 1, { actor_id: actor });
  const request = { filter: `${ofActor(actor)} AND create_time < now()`, request_id: randomUUID(), expected_count: 1 };
  await suite.sql`UPDATE api_keys SET create_time = now() + interval '1 hour' WHERE actor_id = ${actor}`;
  expect(await send(request)).toMatchObject({ status: 409 });
  await suite.sql`UPDATE api_keys SET create_time = now() - interval '1 minute' WHERE actor_id = ${actor}`;
  expect(await complete(request)).toMatchObject({ changed_count: 1 });
  const undone = suite.sql`UPDATE bulk_changes SET done = false, after_key_id = '00000000-0000-0000-0000-000000000000'
    WHERE request_id = ${request.request_id}`;
  expect(await undone).toMatchObject({ count: 1 });
  // A key that came to match after the operation began does not count by the time of a later call.
  const [late = ""] = await importMany(suite.rest, 1, { actor_id: actor });
  await suite.sql`
    UPDATE bulk_changes SET through_key_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE request_id = ${request.request_id}`;
  expect(await complete(request)).toMatchObject({ matched_count: 1, changed_count: 1 });
  expect(await verdictsOf(suite.rest, [rawKey, late])).toEqual({ [REVOKED]: 1, valid: 1 });
});

test("a caller that is restricted to actors counts and changes their keys only", async () => {
  const [own, foreign] = [newActor(), newActor()];
  const scopes = ["keyhold:keys.revoke", "keyhold:keys.disable"];
  const { secret } = await issue(suite.rest, { actor_id: own, scopes, restricted_to_actor_ids: [own] });
  const caller = suite.as(secret);
  const [mine] = await importMany(suite.rest, 4, { actor_id: own });
  const [theirs] = await importMany(suite.rest, 4, { actor_id: foreign });
  for (const verb of ["bulkDisable", "bulkRevoke"]) {
    const filter = `actor_id="${own}" OR actor_id="${foreign}"`;
    expect(succeeded(await send({ filter, validate_only: true }, verb, caller))).toMatchObject({ matched_count: 4 });
    const { body } = await send({ filter: ofActor(foreign), expected_count: 4 }, verb, caller);
    expect(body.error.details[0].metadata).toEqual({ matched_count: "0", expected_count: "4" });
    expect(await complete({ filter: ofActor(foreign) }, verb, caller)).toMatchObject({ matched_count: 0 });
    expect(await complete({ filter }, verb, caller)).toMatchObject({ matched_count: 4, changed_count: 4 });
  }
  expect(await verdictsOf(suite.rest, [mine ?? "", theirs ?? ""])).toEqual({ [REVOKED]: 1, valid: 1 });
  expect((await rowsOf(foreign)).filter((row) => row.revoke_time !== null)).toEqual([]);
});
