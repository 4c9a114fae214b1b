import { beforeAll, describe, expect, test } from "vitest";
import { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { expectRefused, invalid, succeeded, table, withQuery } from "../support/conformance.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useProtocols();
const { rest } = suite;

/** So slow that nothing refills during a test. */
const PER_DAY = { name: "requests", quota: 3, window: "24h" };
const STORED = {
  ...{ ...PER_DAY, window: "86400s", burst: 3, on_demand: false },
  ...{ enforcement: "RATE_LIMIT_ENFORCEMENT_ENFORCED", on_outage: "OUTAGE_POLICY_DENY" },
};

const pathOf = (actorId: string) => `${paths.actors}/${encodeURIComponent(actorId)}`;

function limit(actorId: string, ...rate_limits: readonly object[]) {
  return rest("PATCH", pathOf(actorId), { actor: { rate_limits }, update_mask: "rate_limits" });
}

const MONTHLY = { name: "monthly", limit: 3, period: "QUOTA_PERIOD_MONTH" };

function setQuota(actorId: string, ...quotas: readonly object[]) {
  return rest("PATCH", pathOf(actorId), { actor: { quotas }, update_mask: "quotas" });
}

async function keyOf(actor_id: string, ...rate_limits: readonly object[]): Promise<string> {
  return (await issue(rest, { actor_id, rate_limits })).secret;
}

async function verify(credential: string, charges?: readonly object[]): Promise<Json> {
  return succeeded(await rest("POST", `${paths.keys}:verify`, { credential, ...(charges && { charges }) }));
}

test("all keys of an actor share its limits, also those that were verified before", async () => {
  const [one, two, other] = [await keyOf("shared"), await keyOf("shared"), await keyOf("alone")];
  for (const secret of [one, two, other]) expect((await verify(secret)).limits).toEqual([]);
  succeeded(await limit("shared", PER_DAY));
  const verdicts = [];
  for (const secret of [one, two, one, two, one]) verdicts.push(await verify(secret));
  expect(verdicts.map(({ is_valid }) => is_valid)).toEqual([true, true, true, false, false]);
  expect(verdicts[3]).toMatchObject({
    error_code: "VERIFICATION_ERROR_RATE_LIMITED",
    actor_id: "shared",
    limits: [{ name: "requests", quota: 3, exceeded: true }],
  });
  expect((await verify(other)).is_valid).toBe(true);
  const { body: batch } = await rest("POST", `${paths.keys}:batchVerify`, { requests: [{ credential: two }] });
  expect(batch.results).toMatchObject([{ is_valid: false, error_code: "VERIFICATION_ERROR_RATE_LIMITED" }]);
  succeeded(await rest("DELETE", pathOf("shared")));
  expect(await verify(one)).toMatchObject({ is_valid: true, limits: [] });
});

test("a verification is charged by the limits of the key and of the actor, or by none of them", async () => {
  succeeded(await limit("both", PER_DAY, { ...PER_DAY, name: "reports", on_demand: true }));
  const small = await keyOf("both", { ...PER_DAY, quota: 1 }, { ...PER_DAY, name: "own" });
  const large = await keyOf("both");
  const remaining = async (secret: string, charges?: readonly object[]) =>
    (await verify(secret, charges)).limits.map(({ name, remaining }: Json) => `${name} ${remaining}`);
  expect(await remaining(small)).toEqual(["requests 0", "own 2", "requests 2"]);
  // The key denies it, so that the actor is not charged.
  expect(await verify(small)).toMatchObject({ is_valid: false });
  expect(await remaining(large, [{ name: "requests", cost: 0 }])).toEqual(["requests 2"]);
  // By name, of both.
  expect(
    await remaining(small, [
      { name: "requests", cost: 0 },
      { name: "own", cost: 0 },
    ]),
  ).toEqual([...["requests 0", "own 2", "requests 2"]]);
  expect(
    await remaining(large, [
      { name: "requests", cost: 0 },
      { name: "reports", cost: 2 },
    ]),
  ).toEqual([...["requests 2", "reports 1"]]);
  // The actor denies it, so that the key is not charged.
  await verify(large, [{ name: "requests", cost: 2 }]);
  const fresh = await keyOf("both", { ...PER_DAY, name: "own" });
  expect(await verify(fresh)).toMatchObject({
    is_valid: false,
    error_message: expect.stringMatching(/^the rate limit "requests" is exceeded; retry after /),
    limits: [
      { name: "own", exceeded: false },
      { name: "requests", exceeded: true },
    ],
  });
  const free = ["requests", "own"].map((name) => ({ name, cost: 0 }));
  expect(await remaining(fresh, free)).toEqual(["own 3", "requests 0"]);
  const explained = succeeded(await rest("POST", `${paths.keys}:explain`, { credential: fresh }));
  expect(explained.limits).toMatchObject([{ name: "own" }, { name: "requests", remaining: 0 }, { name: "reports" }]);
});

test("all keys of an actor share its quotas, and an update keeps what is used", async () => {
  const [one, two] = [await keyOf("quotas"), await keyOf("quotas")];
  succeeded(await limit("quotas", { ...PER_DAY, quota: 1_000 }));
  const updated = succeeded(await setQuota("quotas", MONTHLY));
  expect(updated).toMatchObject({ rate_limits: [{ quota: 1_000 }], quotas: [MONTHLY] });
  const verdicts = [];
  for (const secret of [one, two, one, two]) verdicts.push(await verify(secret));
  expect(verdicts.map(({ is_valid }) => is_valid)).toEqual([true, true, true, false]);
  expect(verdicts[3]).toMatchObject({
    error_code: "VERIFICATION_ERROR_QUOTA_EXCEEDED",
    limits: [{ name: "requests" }, { name: "monthly", quota: 3, remaining: 0, exceeded: true }],
  });
  succeeded(await setQuota("quotas", { ...MONTHLY, limit: 4 }));
  expect([(await verify(two)).is_valid, (await verify(one)).is_valid]).toEqual([true, false]);
  expect(succeeded(await setQuota("quotas"))).toMatchObject({ rate_limits: [{ quota: 1_000 }], quotas: [] });
  expect(await verify(one)).toMatchObject({ is_valid: true, limits: [{ name: "requests" }] });
});

test("a quota of an actor is adjusted, and the adjustment audited", async () => {
  // A path with a verb of its own.
  const actorId = "adjusted/a:adjustQuota";
  const adjust = (delta: number, name = "monthly") => rest("POST", `${pathOf(actorId)}:adjustQuota`, { name, delta });
  const unknown = { status: 404, body: { error: { message: "name: the actor has no quota of this name" } } };
  expect(await adjust(1)).toMatchObject(unknown);
  const [one, two] = [await keyOf(actorId), await keyOf(actorId)];
  succeeded(await setQuota(actorId, MONTHLY, { ...MONTHLY, name: "other", limit: 100 }));
  expect(succeeded(await adjust(2))).toMatchObject({ actor_id: actorId, quotas: [MONTHLY, { name: "other" }] });
  expect([(await verify(one)).is_valid, (await verify(two)).is_valid]).toEqual([true, false]);
  succeeded(await adjust(-1));
  expect([(await verify(two)).is_valid, (await verify(one)).is_valid]).toEqual([true, false]);
  expect(await adjust(1, "daily")).toMatchObject(unknown);
  const filter = encodeURIComponent(`resource_id="${actorId}" AND action="actor.updated"`);
  const { audit_events } = succeeded(await rest("GET", `${paths.auditEvents}?filter=${filter}`));
  const adjustments = audit_events.map(
    ({ changes }: Json) => changes.find(({ field }: Json) => field === "quotas").after[0].adjustment,
  );
  expect(adjustments).toEqual([-1, 2]);
});

test("limits of different actors share no bucket, whatever their ids and names", async () => {
  succeeded(await setQuota("a", { ...MONTHLY, name: "x" }));
  succeeded(await limit("a/x", { ...PER_DAY, name: "quota" }));
  const [one, other] = [await keyOf("a"), await keyOf("a/x")];
  for (let count = 0; count < 3; count++) await verify(one);
  expect([(await verify(one)).is_valid, (await verify(other)).is_valid]).toEqual([false, true]);
});

test("a derived token charges the limits of the actor of its key", async () => {
  const secret = await keyOf("deriving");
  const derivation = { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT" };
  const { token } = succeeded(await rest("POST", `${paths.keys}:derive`, derivation)).token;
  succeeded(await limit("deriving", PER_DAY));
  await verify(token, [{ name: "requests", cost: 3 }]);
  expect(await verify(token)).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_RATE_LIMITED" });
  expect(await verify(secret)).toMatchObject({ is_valid: false });
});

test.each(["team_42", "a b", "ä/%2F:*", "a:verify", "a..b", "😀".repeat(60), "?&=#"])(
  "actor %j is updated, read, listed and deleted",
  async (actorId) => {
    expect(await rest("GET", pathOf(actorId))).toMatchObject({ status: 404 });
    const created = succeeded(await limit(actorId, PER_DAY));
    expect(created).toMatchObject({ actor_id: actorId, rate_limits: [STORED] });
    expect(created.create_time).toBe(created.update_time);
    expect(succeeded(await rest("GET", pathOf(actorId)))).toEqual(created);
    const { actors } = succeeded(await rest("GET", `${paths.actors}?page_size=1000`));
    expect(actors).toContainEqual(created);
    expect(succeeded(await limit(actorId))).toMatchObject({ create_time: created.create_time, rate_limits: [] });
    succeeded(await rest("DELETE", pathOf(actorId)));
    for (const method of ["GET", "DELETE"] as const)
      expect(await rest(method, pathOf(actorId))).toMatchObject({
        status: 404,
        body: { error: { status: "NOT_FOUND" } },
      });
  },
);

describe("a filter", () => {
  const ids = ["filter_a", "filter_b", "filter_c", "filter_d"];
  const list = (filter: string, more: Record<string, string> = {}) =>
    rest("GET", withQuery(paths.actors, { filter, ...more }));
  const found = async (filter: string) =>
    succeeded(await list(`actor_id="filter_*" AND (${filter})`)).actors.map(({ actor_id }: Json) => actor_id.at(-1));

  beforeAll(async () => {
    const [a, b, c, d] = ids as [string, string, string, string];
    succeeded(await limit(a, PER_DAY));
    succeeded(await setQuota(b, MONTHLY, { ...MONTHLY, name: "other" }));
    succeeded(await limit(c, { ...PER_DAY, name: "a-b.c" }));
    succeeded(await setQuota(c, MONTHLY));
    succeeded(await limit(d));
    await suite.sql`UPDATE actors SET create_time = create_time - interval '2 days' WHERE actor_id = ANY (${[a, b]})`;
  });

  test.each(
    table([
      ["actor_id=filter_a", "a"],
      ["actor_id>=filter_b AND actorId<filter_d", "bc"],
      ["actor_id:*", "abcd"],
      ["rate_limits:requests", "a"],
      ["rateLimits:a-b.c", "c"],
      ["rate_limits:*", "ac"],
      ["quotas:monthly", "bc"],
      ["quotas:other AND quotas:monthly", "b"],
      ["NOT quotas:monthly", "ad"],
      ["-rate_limits:* -quotas:*", "d"],
      ['create_time < now() - "1d"', "ab"],
      ["update_time > 2020-01-01T00:00:00Z AND quotas:other OR rate_limits:requests", "ab"],
      ["update_time < 2020-01-01T00:00:00Z", ""],
    ] as const),
  )("%s finds %j", async (filter, expected) => {
    expect(await found(filter)).toEqual([...expected]);
  });

  test("selects the pages of a list, whose tokens are of this filter", async () => {
    const filter = 'actor_id="filter_*" AND create_time < now()';
    const listed: string[] = [];
    for (let page_token = ""; listed.length < 4; ) {
      const page = succeeded(await list(filter, { page_size: "1", page_token }));
      listed.push(...page.actors.map(({ actor_id }: Json) => actor_id));
      page_token = page.next_page_token;
      expect(page_token === "").toBe(listed.length === 4);
      if (page_token === "") continue;
      for (const other of ["", 'actor_id="filter_*"'])
        expectRefused(await list(other, { page_token }), invalid("page_token"));
    }
    expect(listed).toEqual(ids);
  });

  test.each(
    table([
      ["owner=b", "unknown field at position 1 (an actor has actor_id, rate_limits, quotas, create_time, update_time)"],
      ["actor_id", "unexpected end at position 9 (expected an operator such as =)"],
      ["quotas=monthly", 'unsupported operator "=" at position 7 (quotas supports :)'],
      ['rate_limits:"r*"', "unexpected wildcard in the value at position 13"],
      ["create_time>yesterday", "invalid value at position 13 (expected an RFC 3339 time"],
      ["rate_limits.name:a", "unknown field at position 1 (rate_limits has no entries)"],
    ] as const),
  )("%s is rejected", async (filter, message) => {
    const answer = await list(filter);
    expectRefused(answer, invalid("filter"));
    expect(answer.body.error.message).toContain(`filter: ${message}`);
  });

  test("is the same over every protocol", async () => {
    for (const { name, call } of suite.protocols) {
      const reply = await call(ActorsService.method.listActors, { filter: "actor_id=filter_b quotas:other" });
      expect([name, reply]).toMatchObject([name, { ok: true, message: { actors: [{ actorId: "filter_b" }] } }]);
      const bad = await call(ActorsService.method.listActors, { filter: "quotas=other" });
      expect([name, bad]).toMatchObject([name, { ok: false, code: "INVALID_ARGUMENT" }]);
    }
  });
});

test("actors are listed in pages by their ids", async () => {
  for (const actorId of ["page_c", "page_a", "page_b"]) succeeded(await limit(actorId, PER_DAY));
  const ids: string[] = [];
  let page_token = "";
  do {
    const page = succeeded(await rest("GET", `${paths.actors}?page_size=1&page_token=${page_token}`));
    ids.push(...page.actors.map(({ actor_id }: Json) => actor_id));
    page_token = page.next_page_token;
  } while (page_token !== "");
  expect(ids).toEqual(ids.toSorted());
  expect(ids.filter((id) => id.startsWith("page_"))).toEqual(["page_a", "page_b", "page_c"]);
  expect(await rest("GET", `${paths.actors}?page_token=x`)).toMatchObject({ status: 400 });
});

test.each<[string, Json, readonly string[]]>([
  ["no mask", { actor: { rate_limits: [PER_DAY] } }, ["update_mask"]],
  ["another field", { actor: {}, update_mask: "create_time" }, ["update_mask"]],
  [
    "invalid limits",
    { actor: { rate_limits: [{ name: "A", quota: 0, window: "x" }, PER_DAY, PER_DAY] }, update_mask: "rate_limits" },
    ["actor.rate_limits[0].name", "actor.rate_limits[0].quota", "actor.rate_limits[0].window"],
  ],
  [
    "one name twice",
    { actor: { rate_limits: [PER_DAY, PER_DAY] }, update_mask: "rate_limits" },
    ["actor.rate_limits[1].name"],
  ],
  [
    "invalid quotas",
    {
      actor: {
        quotas: [
          { ...MONTHLY, limit: 0 },
          { ...MONTHLY, period: "x" },
        ],
      },
      update_mask: "quotas",
    },
    ["actor.quotas[1].period"],
  ],
  [
    "two quotas of one name",
    { actor: { quotas: [MONTHLY, MONTHLY] }, update_mask: "rate_limits,quotas" },
    ["actor.quotas[1].name"],
  ],
  [
    "nine limits",
    { actor: { rate_limits: Array.from("abcdefghi", (name) => ({ ...PER_DAY, name })) }, update_mask: "rate_limits" },
    ["actor.rate_limits"],
  ],
])("an update with %s names the field", async (_, body, fields) => {
  const answer = await rest("PATCH", pathOf("invalid"), body);
  expect(answer.status).toBe(400);
  const { details } = answer.body.error;
  const violations = details.flatMap(({ field_violations = [] }: Json) => field_violations);
  expect(violations.map(({ field }: Json) => field).sort()).toEqual(fields);
  expect(await rest("GET", pathOf("invalid"))).toMatchObject({ status: 404 });
});

test("an actor_id that no key can have is rejected", async () => {
  expect(await limit("a".repeat(256), PER_DAY)).toMatchObject({ status: 400 });
});
