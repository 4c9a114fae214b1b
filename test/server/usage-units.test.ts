import { expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { createKeyholdClient } from "../../src/client/client.ts";
import { expectRefused, invalid, succeeded, table } from "../support/conformance.ts";
import { check, describeRequest } from "../support/ext-authz.ts";
import { fields, forwardAuth } from "../support/forward-auth.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { introspect } from "../support/introspect.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { issue, type Json, paths } from "../support/rest.ts";
import { openStream } from "../support/verification-stream.ts";

/** What verifications over each protocol cost by limits. A stop of the server stores what it has counted. */

const GATEWAYS = {
  KEYHOLD_GATEWAYS: "forward-auth,ext-authz",
  KEYHOLD_GATEWAY_CALLERS: "network",
  KEYHOLD_GATEWAY_NETWORKS: "127.0.0.1/32",
};
const suite = useGuardedService(() => GATEWAYS);
const stored = () => suite.server.restart({ KEYHOLD_AUTH: "admin-token", ...GATEWAYS });

const limit = (name: string, more: Json = {}) => ({ name, quota: 100_000, window: "24h", ...more });
const tokens = (cost: number) => [{ name: "tokens", cost }];

const verify = async (credential: string, charges: readonly object[] = []) =>
  succeeded(await suite.rest("POST", `${paths.keys}:verify`, { credential, charges }));

async function units(query: string, rest = suite.rest): Promise<Record<string, string>> {
  const { usage_counts } = succeeded(await rest("GET", `${paths.usage}?${query}`));
  return Object.fromEntries(usage_counts.map((one: Json) => [one.limit || one.key_id || one.actor_id, one.units]));
}

const setActor = async (actorId: string, ...rate_limits: readonly object[]) =>
  succeeded(await suite.rest("PATCH", `${paths.actors}/${actorId}?update_mask=rate_limits`, { rate_limits }));

test("each verification counts its costs once, whatever the protocol", async () => {
  const rate_limits = [limit("requests"), limit("tokens", { on_demand: true })];
  const { keyId, secret } = await issue(suite.rest, { rate_limits });
  const token = suite.token("keyhold:verify");
  await verify(secret, tokens(1));
  await grpcProtocol("gRPC", suite.server.address).call(
    ApiKeysService.method.verifyApiKey,
    { credential: secret, charges: tokens(20) },
    bearer(token),
  );
  const requests = [
    { credential: secret, charges: tokens(300) },
    { credential: secret, charges: tokens(4_000) },
  ];
  succeeded(
    await suite.rest("POST", `${paths.keys}:batchVerify`, { requests: [...requests, { credential: "unknown" }] }),
  );
  const stream = openStream(suite.server.address, bearer(token));
  stream.send({ id: 1, request: { credential: secret, charges: tokens(50_000) } });
  await stream.received(1);
  await stream.end();
  const derivation = { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT" };
  await verify(succeeded(await suite.rest("POST", `${paths.keys}:derive`, derivation)).token.token, tokens(2));
  const headers = fields(`Authorization: Bearer ${secret}`);
  expect((await forwardAuth(suite.server, { headers, suffix: "?charges=tokens:30" })).status).toBe(200);
  const checked = describeRequest({ headers, extensions: { charges: "tokens:400" } });
  expect((await check(suite.server, checked)).status).toBe(200);
  await introspect(suite.server, { token: secret }, bearer(token));
  await stored();
  expect(await units(`key_id=${keyId}&group_by=limit`)).toEqual({ requests: "9", tokens: "54753" });
  const { valid_count, usage_counts } = succeeded(await suite.rest("GET", `${paths.usage}/${keyId}`));
  expect([valid_count, usage_counts.length]).toEqual(["9", 1]);
});

test("limits of the key and of its actor count by name; SHADOW counts, peeks and denied verifications do not", async () => {
  await setActor("shared", limit("requests"), limit("exports", { on_demand: true }));
  const { keyId, secret } = await issue(suite.rest, {
    actor_id: "shared",
    rate_limits: [limit("requests"), limit("shadow", { quota: 1, enforcement: "RATE_LIMIT_ENFORCEMENT_SHADOW" })],
    quotas: [
      { name: "requests", limit: 1_000, period: "QUOTA_PERIOD_MONTH" },
      { name: "monthly", limit: 5, period: "QUOTA_PERIOD_MONTH" },
    ],
  });
  const charge = (costs: Record<string, number>) =>
    verify(
      secret,
      Object.entries(costs).map(([name, cost]) => ({ name, cost })),
    );
  const peek = { requests: 0, shadow: 0, monthly: 0 };
  for (const costs of [{}, peek, { requests: 0, shadow: 5, monthly: 4, exports: 7 }] as Record<string, number>[])
    expect(await charge(costs)).toMatchObject({ is_valid: true });
  expect(await charge({})).toMatchObject({ error_code: "VERIFICATION_ERROR_QUOTA_EXCEEDED" });
  const other = await issue(suite.rest, { actor_id: "shared" });
  await verify(other.secret, [{ name: "requests", cost: 40 }]);
  await stored();
  expect(await units(`key_id=${keyId}&group_by=limit`)).toEqual({
    ...{ requests: "1", exports: "7", shadow: "6", monthly: "5" },
  });
  expect(await units("actor_id=shared&limit=requests&group_by=actor&step=1d")).toEqual({ shared: "41" });
  expect(await units("limit=requests&group_by=key&actor_id=shared")).toEqual({ [other.keyId]: "40", [keyId]: "1" });
});

test("a restricted caller sees the units of keys of its actors only", async () => {
  const rate_limits = [limit("pages")];
  const [mine, foreign] = [
    await issue(suite.rest, { actor_id: "mine", rate_limits }),
    await issue(suite.rest, { actor_id: "foreign", rate_limits }),
  ];
  const reader = { scopes: ["keyhold:keys.read"], restricted_to_actor_ids: ["mine"] };
  const restricted = suite.as((await issue(suite.rest, reader)).secret);
  for (const { secret } of [mine, foreign, foreign]) await verify(secret);
  await stored();
  expect(await units("limit=pages&group_by=actor")).toEqual({ mine: "1", foreign: "2" });
  expect(await units("limit=pages&group_by=actor", restricted)).toEqual({ mine: "1" });
  for (const condition of [`key_id=${foreign.keyId}`, "actor_id=foreign"])
    expect(await units(`group_by=limit&${condition}`, restricted)).toEqual({});
});

test("units are the same over REST, gRPC and Connect, and a query has pages", async () => {
  const rate_limits = [limit("pages"), limit("words")];
  const { keyId, secret } = await issue(suite.rest, { rate_limits });
  await verify(secret, [{ name: "words", cost: 250 }]);
  await stored();
  const request = { keyId, groupBy: ["limit"], step: "1d", pageSize: 1 };
  const token = suite.token("keyhold:keys.read");
  const { usage } = createKeyholdClient({ baseUrl: suite.server.url, token });
  const first = await usage.queryUsage(request);
  const second = await usage.queryUsage({ ...request, pageToken: first.nextPageToken });
  expect(first.usageCounts).toMatchObject([{ limit: "words", units: 250n, count: 0n, outcome: "", keyId: "" }]);
  expect(second).toMatchObject({ usageCounts: [{ limit: "pages", units: 1n }], nextPageToken: "" });
  const grpc = grpcProtocol("gRPC", suite.server.address);
  const answer = await grpc.call(UsageService.method.queryUsage, request, bearer(token));
  expect(answer).toMatchObject({ ok: true, message: { usageCounts: first.usageCounts } });
  const path = `${paths.usage}?key_id=${keyId}&group_by=limit&step=1d&page_size=1`;
  const rest = await suite.rest("GET", path);
  expect(succeeded(rest).usage_counts).toMatchObject([{ limit: "words", units: "250", count: "0" }]);
  const other = await suite.rest("GET", `${path}&limit=words&page_token=${first.nextPageToken}`);
  expectRefused(other, invalid("page_token"));
});

const INVALID = table([
  { query: "limit=Tokens", field: "limit" },
  { query: "limit=10", field: "limit" },
  { query: "limit=tokens&outcome=VALID", field: "outcome" },
  { query: "group_by=limit&outcome=VALID", field: "outcome" },
  { query: "limit=tokens&group_by=outcome", field: "group_by" },
  { query: "group_by=outcome&group_by=limit", field: "group_by" },
]);

test.each(INVALID)("a query with $query is invalid in $field", async ({ query, field }) => {
  expectRefused(await suite.rest("GET", `${paths.usage}?${query}`), invalid(field));
});
