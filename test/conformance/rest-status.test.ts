import { describe, expect, test } from "vitest";
import {
  badCredential,
  derive,
  expectRefused,
  expire,
  type KeyKind,
  keyKinds,
  precondition,
  recordsOf,
  revoke,
  succeeded,
  table,
  useService,
  withQuery,
} from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

type Status = "ACTIVE" | "REVOKED" | "EXPIRED";

const [issued, imported] = keyKinds(rest) as [KeyKind, KeyKind];

const STATES: readonly (readonly [Status, string, (keyId: string) => Promise<unknown>])[] = [
  ["ACTIVE", "is made", async () => {}],
  ["ACTIVE", "is made and does not expire yet", async (keyId) => moveEnd(keyId, "1 hour")],
  ["EXPIRED", "has reached its expire_time", (keyId) => expire(suite, keyId)],
  ["REVOKED", "is revoked", (keyId) => revoke(rest, keyId)],
  ["REVOKED", "is revoked and would have expired since", revokeThenExpire],
  ["REVOKED", "has expired and is revoked then", expireThenRevoke],
];

async function moveEnd(keyId: string, interval: string): Promise<void> {
  await suite.sql`UPDATE api_keys SET expire_time = now() + ${interval}::interval WHERE key_id = ${keyId}`;
}

async function revokeThenExpire(keyId: string): Promise<void> {
  await revoke(rest, keyId);
  await expire(suite, keyId);
}

async function expireThenRevoke(keyId: string): Promise<void> {
  await expire(suite, keyId);
  expect(await revoke(rest, keyId)).toMatchObject({ status: "KEY_STATUS_REVOKED" });
}

const ALL: readonly Status[] = ["ACTIVE", "REVOKED", "EXPIRED"];

describe.each(keyKinds(rest))("the status of an $kind key", ({ path, make }) => {
  test.each(table(STATES))("is %s when it %s, in every response", async (status, what, reach) => {
    const actor_id = `${what} (${path})`;
    const { keyId, credential } = await make({ actor_id });
    await reach(keyId);
    const name = `KEY_STATUS_${status}`;
    expect(succeeded(await rest("GET", `${path}/${keyId}`)).status).toBe(name);
    for (const wanted of ALL) {
      const found = await list(path, `actor_id="${actor_id}" AND status=KEY_STATUS_${wanted}`);
      const others = await list(path, `actor_id="${actor_id}" AND status!=KEY_STATUS_${wanted}`);
      const record = { key_id: keyId, status: name };
      expect([found, others]).toEqual(wanted === status ? [[record], []] : [[], [record]]);
    }
    const verdict = await verify(rest, credential);
    const expected = status === "ACTIVE" ? { status: name } : { error_code: `VERIFICATION_ERROR_${status}` };
    expect(verdict).toMatchObject({ is_valid: status === "ACTIVE", ...expected });
  });

  async function list(path: string, filter: string): Promise<Json[]> {
    const records = recordsOf(succeeded(await rest("GET", withQuery(path, { filter }))));
    return records.map(({ key_id, status }) => ({ key_id, status }));
  }
});

const OPERATIONS: readonly (readonly [string, KeyKind, (url: string) => Promise<Json>])[] = [
  ["updating an issued key", issued, (url) => rest("PATCH", url, { name: "new" })],
  ["updating an imported key", imported, (url) => rest("PATCH", url, { name: "new" })],
  ["rotating an issued key", issued, (url) => rest("POST", `${url}:rotate`, {})],
];

const INACTIVE: readonly (readonly [string, reason: string, (keyId: string) => Promise<unknown>])[] = [
  ["is revoked", "API_KEY_REVOKED", (keyId) => revoke(rest, keyId)],
  ["has expired", "API_KEY_EXPIRED", (keyId) => expire(suite, keyId)],
  ["is revoked and has expired", "API_KEY_REVOKED", expireThenRevoke],
];

describe.each(table(OPERATIONS))("%s", (_, { make, path }, call) => {
  test.each(table(INACTIVE))("that %s is 409, and changes nothing", async (_, reason, reach) => {
    const { keyId } = await make();
    await reach(keyId);
    const before = succeeded(await rest("GET", `${path}/${keyId}`));
    expectRefused(await call(`${path}/${keyId}`), precondition(reason, keyId));
    expect(succeeded(await rest("GET", `${path}/${keyId}`))).toEqual(before);
  });
});

describe("a key or token with a ttl of one second", () => {
  test("is valid, and then expires on its own", async () => {
    const parent = await issue(rest, { actor_id: "brief-parent", scopes: ["a"] });
    const brief = await issue(rest, { actor_id: "brief", ttl: "1s" });
    expect(await verify(rest, brief.secret)).toMatchObject({ is_valid: true, expire_time: brief.record.expire_time });
    const macaroon = await derive(rest, parent.secret, { algorithm: "TOKEN_ALGORITHM_MACAROON", ttl: "1s" });
    const jwt = await derive(rest, parent.secret, { ttl: "2s" });
    const ends = [
      [brief.secret, brief.record.expire_time],
      [macaroon.token, macaroon.expire_time],
      [jwt.token, jwt.expire_time],
    ];
    for (const [credential, end] of ends) {
      await expect
        .poll(() => verify(rest, credential), { timeout: 5000, interval: 50 })
        .toMatchObject({
          is_valid: false,
          error_code: "VERIFICATION_ERROR_EXPIRED",
        });
      expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(end));
    }
    expect(succeeded(await rest("GET", `${paths.issued}/${brief.keyId}`)).status).toBe("KEY_STATUS_EXPIRED");
    expectRefused(
      await rest("POST", `${paths.keys}:derive`, { credential: brief.secret, algorithm: "TOKEN_ALGORITHM_JWT" }),
      badCredential("EXPIRED"),
    );
    expect(await verify(rest, parent.secret)).toMatchObject({ is_valid: true });
  });
});
