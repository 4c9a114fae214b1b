import { describe, expect, test } from "vitest";
import { expectRefused, invalid, succeeded } from "../support/conformance.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useProtocols();
const { rest } = suite;

/** So slow that nothing refills during a test. */
const PER_DAY = { name: "requests", quota: 3, window: "24h" };
const MONTHLY = { name: "monthly", limit: 3, period: "QUOTA_PERIOD_MONTH" };

function create(limits: { readonly rate_limits?: readonly object[]; readonly quotas?: readonly object[] }) {
  return issue(rest, { name: "limited", actor_id: "actor_1", ...limits });
}

async function verify(credential: string, charges: readonly object[] = []): Promise<Json> {
  return succeeded(await rest("POST", `${paths.keys}:verify`, { credential, charges }));
}

/** Verifies so often, one after another, and returns whether the credential was accepted. */
async function verifyTimes(count: number, credential: string, charges: readonly object[] = []): Promise<boolean[]> {
  const accepted: boolean[] = [];
  for (let number = 0; number < count; number++) accepted.push((await verify(credential, charges)).is_valid);
  return accepted;
}

async function update(keyId: string, fields: Record<string, unknown>): Promise<Json> {
  const mask = Object.keys(fields).join(",");
  return succeeded(await rest("PATCH", `${paths.issued}/${keyId}?update_mask=${mask}`, fields));
}

describe.each(["requests", "monthly"] as const)("%s", (name) => {
  const limits = () => (name === "requests" ? { rate_limits: [PER_DAY] } : { quotas: [MONTHLY] });
  const error = name === "requests" ? "VERIFICATION_ERROR_RATE_LIMITED" : "VERIFICATION_ERROR_QUOTA_EXCEEDED";

  test("a key is accepted as often as the limit admits", async () => {
    const { secret, keyId } = await create(limits());
    const remaining = [];
    for (let count = 0; count < 3; count++) {
      const { is_valid, limits } = await verify(secret);
      remaining.push([is_valid, limits[0].remaining, limits[0].exceeded]);
    }
    expect(remaining).toEqual([
      [true, 2, false],
      [true, 1, false],
      [true, 0, false],
    ]);
    const denied = await verify(secret);
    expect(denied).toMatchObject({ is_valid: false, error_code: error, key_id: keyId, actor_id: "actor_1" });
    expect(denied.limits).toMatchObject([{ name, quota: 3, remaining: 0, exceeded: true }]);
    expect(Number.parseFloat(denied.limits[0].retry_delay)).toBeGreaterThan(1_000);
    expect(Date.parse(denied.limits[0].reset_time)).toBeGreaterThan(Date.now());
  });

  test("tokens, and items of a batch, are charged to the key", async () => {
    const { secret: credential } = await create(limits());
    const body = { credential, algorithm: "TOKEN_ALGORITHM_JWT" };
    const { token } = succeeded(await rest("POST", `${paths.keys}:derive`, body));
    expect(await verifyTimes(1, token.token)).toEqual([true]);
    const requests = [{ credential }, { credential: token.token }, { credential }];
    const { results } = succeeded(await rest("POST", `${paths.keys}:batchVerify`, { requests }));
    expect(results.map(({ is_valid }: Json) => is_valid)).toEqual([true, true, false]);
  });

  test("a cost of 0 reports the limit and charges nothing", async () => {
    const { secret } = await create(limits());
    expect((await verify(secret, [{ name, cost: 0 }])).limits).toMatchObject([{ remaining: 3 }]);
    expect(await verifyTimes(4, secret, [{ name, cost: 0 }])).toEqual([true, true, true, true]);
    expect((await verify(secret, [{ name, cost: 2 }])).limits).toMatchObject([{ remaining: 1 }]);
    expect((await verify(secret, [{ name, cost: 2 }])).is_valid).toBe(false);
    expect((await verify(secret, [{ name, cost: 4 }])).limits[0].exceeded).toBe(true);
    expect(await verifyTimes(2, secret)).toEqual([true, false]);
  });

  test("a change of the limit takes effect when the update has returned, and keeps what was used", async () => {
    const { secret, keyId } = await create(limits());
    expect(await verifyTimes(4, secret)).toEqual([true, true, true, false]);
    const larger =
      name === "requests" ? { rate_limits: [{ ...PER_DAY, quota: 5 }] } : { quotas: [{ ...MONTHLY, limit: 5 }] };
    await update(keyId, larger);
    expect(await verifyTimes(3, secret)).toEqual([true, true, false]);
    await update(keyId, name === "requests" ? { rate_limits: [] } : { quotas: [] });
    expect(await verifyTimes(6, secret)).toEqual(Array(6).fill(true));
  });

  test("an explanation has the state of the limit and charges nothing", async () => {
    const { secret, keyId } = await create(limits());
    const explain = async (body: object) => succeeded(await rest("POST", `${paths.keys}:explain`, body));
    for (const body of [{ key_id: keyId }, { credential: secret }]) {
      const { is_valid, checks, limits } = await explain(body);
      expect(is_valid).toBe(true);
      expect(limits).toMatchObject([{ name, remaining: 3 }]);
      expect(checks.at(-1)).toMatchObject({ name: "VERIFICATION_CHECK_LIMITS", result: "CHECK_RESULT_PASS" });
    }
    await verifyTimes(3, secret);
    const { is_valid, error_code, checks } = await explain({ key_id: keyId });
    expect([is_valid, error_code]).toEqual([false, error]);
    expect(checks.at(-1)).toMatchObject({ result: "CHECK_RESULT_FAIL", detail: `${name}: 0 of 3 left` });
  });

  test("no call that is no verification is charged", async () => {
    const { secret } = await create(limits());
    const derive = { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT" };
    for (let count = 0; count < 5; count++) succeeded(await rest("POST", `${paths.keys}:derive`, derive));
    expect(await verifyTimes(4, secret)).toEqual([true, true, true, false]);
    const { token } = succeeded(await rest("POST", `${paths.keys}:derive`, derive));
    expect(await verify(token.token)).toMatchObject({ is_valid: false, error_code: error });
  });
});

test("all limits are checked before any is charged", async () => {
  const { secret } = await create({ rate_limits: [PER_DAY, { ...PER_DAY, name: "few", quota: 1 }], quotas: [MONTHLY] });
  expect(await verifyTimes(3, secret)).toEqual([true, false, false]);
  const denied = await verify(secret);
  expect(denied.error_code).toBe("VERIFICATION_ERROR_RATE_LIMITED");
  expect(denied.limits.map(({ exceeded }: Json) => exceeded)).toEqual([false, true, false]);
  const { limits } = await verify(secret, [{ name: "few", cost: 0 }]);
  expect(limits).toMatchObject([
    { name: "requests", remaining: 1 },
    { name: "few", remaining: 0 },
    { name: "monthly", remaining: 1 },
  ]);
});

test("a limit on demand is charged only by its name, and an unknown name is no limit", async () => {
  const { secret } = await create({ rate_limits: [{ ...PER_DAY, name: "exports", on_demand: true }] });
  expect((await verify(secret)).limits).toEqual([]);
  expect(await verifyTimes(4, secret, [{ name: "other", cost: 9 }])).toEqual([true, true, true, true]);
  expect(await verifyTimes(4, secret, [{ name: "exports", cost: 1 }])).toEqual([true, true, true, false]);
  expect(await verifyTimes(1, secret)).toEqual([true]);
});

test("a limit in the shadow never denies, and says when it would", async () => {
  const shadow = { ...PER_DAY, enforcement: "RATE_LIMIT_ENFORCEMENT_SHADOW" };
  const { secret } = await create({ rate_limits: [shadow] });
  const verdicts: Json[] = [];
  for (let count = 0; count < 5; count++) verdicts.push(await verify(secret));
  expect(verdicts.map(({ is_valid }) => is_valid)).toEqual(Array(5).fill(true));
  expect(verdicts.map(({ limits }) => limits[0].exceeded)).toEqual([false, false, false, true, true]);
});

test("what is used of a quota can be adjusted, on all servers when the call returns", async () => {
  const { secret, keyId } = await create({ quotas: [MONTHLY] });
  const adjust = (delta: number) => rest("POST", `${paths.keys}/${keyId}:adjustQuota`, { name: "monthly", delta });
  expect(await verifyTimes(4, secret)).toEqual([true, true, true, false]);
  succeeded(await adjust(-2));
  expect(await verifyTimes(3, secret)).toEqual([true, true, false]);
  succeeded(await adjust(-1_000));
  succeeded(await adjust(2));
  expect(await verifyTimes(2, secret)).toEqual([true, false]);
  const filter = encodeURIComponent(`key_id="${keyId}" AND action="key.updated"`);
  const { audit_events: events } = succeeded(await rest("GET", `${paths.auditEvents}?filter=${filter}`));
  expect(
    events.map(({ changes }: Json) => changes.find(({ field }: Json) => field === "quotas").after[0].adjustment),
  ).toEqual(expect.arrayContaining([-2, -1_000, 2]));
});

test.each([
  ["rate_limits[0].name", { rate_limits: [{ ...PER_DAY, name: "Requests" }] }],
  ["rate_limits[0].quota", { rate_limits: [{ ...PER_DAY, quota: -1 }] }],
  ["rate_limits[0].window", { rate_limits: [{ ...PER_DAY, window: "500d" }] }],
  ["rate_limits[0].window", { rate_limits: [{ ...PER_DAY, window: "soon" }] }],
  ["rate_limits[0].burst", { rate_limits: [{ ...PER_DAY, burst: 0 }] }],
  ["rate_limits[0].burst", { rate_limits: [{ ...PER_DAY, burst: 1_000 }] }],
  ["rate_limits[1].name", { rate_limits: [PER_DAY, PER_DAY] }],
  ["rate_limits", { rate_limits: Array.from({ length: 9 }, (_, index) => ({ ...PER_DAY, name: `n${index}` })) }],
  ["quotas[0].name", { quotas: [{ ...MONTHLY, name: "no spaces" }] }],
  ["quotas[0].limit", { quotas: [{ ...MONTHLY, limit: -3 }] }],
  ["quotas[0].period", { quotas: [{ name: "monthly", limit: 3 }] }],
  ["quotas[1].name", { quotas: [MONTHLY, MONTHLY] }],
] as const)("%s: an invalid limit is rejected (%#)", async (field, limits) => {
  expectRefused(await rest("POST", paths.issued, { name: "limited", actor_id: "actor_1", ...limits }), invalid(field));
});

test("an update without a mask does not change limits", async () => {
  const { secret, record } = await create({ rate_limits: [PER_DAY], quotas: [MONTHLY] });
  const changed = { ...record, name: "renamed", rate_limits: [], quotas: [] };
  succeeded(await rest("PATCH", `${paths.issued}/${record.key_id}`, changed));
  const stored = succeeded(await rest("GET", `${paths.issued}/${record.key_id}`));
  expect(stored).toMatchObject({ name: "renamed", rate_limits: [{ name: "requests" }], quotas: [{ name: "monthly" }] });
  expect(await verifyTimes(4, secret)).toEqual([true, true, true, false]);
});
