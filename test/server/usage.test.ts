import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { createKeyholdClient } from "../../src/client/client.ts";
import { expectRefused, invalid, succeeded, table } from "../support/conformance.ts";
import { check, describeRequest } from "../support/ext-authz.ts";
import { fields, forwardAuth } from "../support/forward-auth.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { introspect } from "../support/introspect.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { type Json, paths } from "../support/rest.ts";
import { openStream } from "../support/verification-stream.ts";

/** What verifications over each protocol leave in the usage of their keys. A stop of the server stores what it has counted. */

const suite = useGuardedService();
const environment = { KEYHOLD_AUTH: "admin-token" };
const stored = () => suite.server.restart(environment);

async function newKey(fields: Json = {}): Promise<{ keyId: string; secret: string }> {
  const body = { name: "a key", actor_id: "actor_1", ...fields };
  const { secret, issued_api_key: key } = succeeded(await suite.rest("POST", paths.issued, body));
  return { keyId: key.key_id, secret };
}

const verify = async (credential: string, fields: Json = {}) =>
  succeeded(await suite.rest("POST", `${paths.keys}:verify`, { credential, ...fields }));

const usageOf = async (keyId: string, query = "") =>
  succeeded(await suite.rest("GET", `${paths.usage}/${keyId}?${query}`));

async function queryUsage(query: Record<string, string>): Promise<Json[]> {
  return succeeded(await suite.rest("GET", `${paths.usage}?${new URLSearchParams(query)}`)).usage_counts;
}

test("each verification counts once, by outcome, whatever the protocol", async () => {
  const { keyId, secret } = await newKey({ scopes: ["read"] });
  for (let times = 0; times < 3; times++) await verify(secret);
  await verify(secret, { required_scopes: ["write"] });
  const requests = [{ credential: secret }, { credential: secret }, { credential: "unknown" }];
  succeeded(await suite.rest("POST", `${paths.keys}:batchVerify`, { requests }));
  const token = suite.token("keyhold:verify");
  const stream = openStream(suite.server.address, bearer(token));
  stream.send({ id: 1, request: { credential: secret } });
  await stream.received(1);
  await stream.end();
  await introspect(suite.server, { token: secret }, bearer(token));
  await stored();
  const usage = await usageOf(keyId);
  expect(usage).toMatchObject({ key_id: keyId, valid_count: "7", rejected_count: "1" });
  const [hour] = usage.usage_counts;
  expect(Date.parse(hour.start_time) % 3_600_000).toBe(0);
  expect(usage.usage_counts.map(({ outcome, count }: Json) => [outcome, count])).toEqual([
    ["VALID", "7"],
    ["INSUFFICIENT_SCOPE", "1"],
  ]);
});

test("gateways count", async () => {
  const { keyId, secret } = await newKey();
  const gateways = { ...environment, KEYHOLD_GATEWAYS: "forward-auth,ext-authz", KEYHOLD_GATEWAY_CALLERS: "network" };
  await suite.server.restart({ ...gateways, KEYHOLD_GATEWAY_NETWORKS: "127.0.0.1/32" });
  const headers = fields(`Authorization: Bearer ${secret}`);
  expect((await forwardAuth(suite.server, { headers })).status).toBe(200);
  expect((await check(suite.server, describeRequest({ headers }))).status).toBe(200);
  await stored();
  expect(await usageOf(keyId)).toMatchObject({ valid_count: "2" });
});

test("callers of Keyhold, derivations and explanations do not count", async () => {
  const caller = await newKey({ scopes: ["keyhold:admin"] });
  const { keyId, secret } = await newKey();
  const as = suite.as(caller.secret);
  succeeded(await as("POST", `${paths.keys}:derive`, { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT" }));
  succeeded(await as("POST", `${paths.keys}:explain`, { credential: secret }));
  await stored();
  expect(await usageOf(caller.keyId)).toMatchObject({ valid_count: "0", usage_counts: [] });
  expect(await usageOf(keyId)).toMatchObject({ valid_count: "0" });
});

test("what rejected credentials are rejected for is precise, and a derived token counts for its key", async () => {
  const revoked = await newKey();
  const rotated = await newKey();
  const { token } = succeeded(
    await suite.rest("POST", `${paths.keys}:derive`, { credential: rotated.secret, algorithm: "TOKEN_ALGORITHM_JWT" }),
  );
  await verify(token.token);
  succeeded(await suite.rest("POST", `${paths.keys}/${revoked.keyId}:revoke`, {}));
  succeeded(await suite.rest("POST", `${paths.issued}/${rotated.keyId}:rotate`, {}));
  for (const { secret } of [revoked, rotated]) await verify(secret);
  await stored();
  const outcomes = async ({ keyId }: { keyId: string }) =>
    (await usageOf(keyId)).usage_counts.map(({ outcome }: Json) => outcome).sort();
  expect(await outcomes(revoked)).toEqual(["KEY_REVOKED"]);
  expect(await outcomes(rotated)).toEqual(["SECRET_ROTATED", "VALID"]);
});

test("counts are the same over REST, gRPC and Connect, and a query has pages", async () => {
  const keys = await Promise.all([1, 2, 3].map(() => newKey({ actor_id: "paged" })));
  for (const [index, { secret }] of keys.entries()) for (let times = 0; times <= index; times++) await verify(secret);
  await stored();
  const request = { actorId: "paged", groupBy: ["key"], pageSize: 2 };
  const token = suite.token("keyhold:keys.read");
  const grpc = await grpcProtocol("gRPC", suite.server.address).call(
    UsageService.method.queryUsage,
    request,
    bearer(token),
  );
  const { usage } = createKeyholdClient({ baseUrl: suite.server.url, token });
  const first = await usage.queryUsage(request);
  expect(grpc).toMatchObject({ ok: true, message: { usageCounts: first.usageCounts } });
  const rest = await queryUsage({ actor_id: "paged", group_by: "key", page_size: "2" });
  const expected = keys.toReversed().map(({ keyId }, index) => [keyId, "paged", BigInt(3 - index)]);
  expect(rest.map(({ key_id, actor_id, count }) => [key_id, actor_id, BigInt(count)])).toEqual(expected.slice(0, 2));
  const second = await usage.queryUsage({ ...request, pageToken: first.nextPageToken });
  const all = [...first.usageCounts, ...second.usageCounts].map((one) => [one.keyId, one.actorId, one.count]);
  expect([all, second.nextPageToken]).toEqual([expected, ""]);
  const other = { ...request, actorId: "other", pageToken: first.nextPageToken };
  await expect(usage.queryUsage(other)).rejects.toMatchObject({ code: Code.InvalidArgument });
});

test("a restricted caller sees the keys of its actors only", async () => {
  const mine = await newKey({ actor_id: "mine" });
  const foreign = await newKey({ actor_id: "foreign" });
  const fields = { scopes: ["keyhold:keys.read"], restricted_to_actor_ids: ["mine"] };
  const restricted = suite.as((await newKey(fields)).secret);
  for (const { secret } of [mine, foreign, foreign]) await verify(secret);
  await stored();
  const query = "group_by=actor";
  const { usage_counts: all } = succeeded(await restricted("GET", `${paths.usage}?${query}`));
  expect(all).toMatchObject([{ actor_id: "mine", count: "1" }]);
  for (const condition of [`key_id=${foreign.keyId}`, "actor_id=foreign"])
    expect(succeeded(await restricted("GET", `${paths.usage}?${condition}`)).usage_counts).toEqual([]);
  expect((await restricted("GET", `${paths.usage}/${foreign.keyId}`)).status).toBe(404);
  expect(succeeded(await restricted("GET", `${paths.usage}/${mine.keyId}`)).valid_count).toBe("1");
});

test("the kind and the outcome select, and a deleted key keeps its usage", async () => {
  const rawKey = `raw-${Math.random().toString(36).repeat(3)}`;
  const imported = { name: "n", actor_id: "kinds", raw_key: rawKey };
  const { key_id } = succeeded(await suite.rest("POST", paths.imported, imported));
  const issued = await newKey({ actor_id: "kinds" });
  for (const credential of [rawKey, rawKey, issued.secret]) await verify(credential);
  await stored();
  const count = async (query: Record<string, string>) => (await queryUsage(query)).map((one) => one.count);
  expect(await count({ actor_id: "kinds", kind: "KEY_KIND_IMPORTED" })).toEqual(["2"]);
  expect(await count({ actor_id: "kinds", kind: "KEY_KIND_ISSUED", outcome: "VALID" })).toEqual(["1"]);
  expect(await count({ actor_id: "kinds", outcome: "EXPIRED" })).toEqual([]);
  succeeded(await suite.rest("DELETE", `${paths.imported}/${key_id}`));
  const [deleted] = await queryUsage({ key_id, group_by: "key" });
  expect(deleted).toMatchObject({ key_id, actor_id: "", count: "2" });
});

const INVALID = table([
  { query: "step=2h", field: "step" },
  { query: "outcome=REVOKED", field: "outcome" },
  { query: "key_id=key", field: "key_id" },
  { query: "group_by=keys", field: "group_by" },
  { query: "page_size=-1", field: "page_size" },
  { query: "page_token=token", field: "page_token" },
  { query: "start_time=2030-01-01T00:00:00Z&end_time=2029-01-01T00:00:00Z", field: "start_time" },
]);

test.each(INVALID)("a query with $query is invalid in $field", async ({ query, field }) => {
  const answer = await suite.rest("GET", `${paths.usage}?${query}`);
  expectRefused(answer, invalid(field));
});

test("a period of too many steps is rejected", async () => {
  const { keyId } = await newKey();
  const answer = await suite.rest("GET", `${paths.usage}/${keyId}?start_time=2026-01-01T00:00:00Z`);
  expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringMatching(/start_time.*1000 steps/)]);
});

test("nothing is counted if it is off", async () => {
  const { keyId, secret } = await newKey();
  await suite.server.restart({ ...environment, KEYHOLD_USAGE: "off" });
  await verify(secret);
  await stored();
  expect(await usageOf(keyId)).toMatchObject({ valid_count: "0" });
});
