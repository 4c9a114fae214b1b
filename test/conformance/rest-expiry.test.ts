import { describe, expect, test } from "vitest";
import {
  between,
  derive,
  expectRefused,
  expire,
  invalid,
  keyKinds,
  newRawKey,
  precondition,
  revoke,
  succeeded,
  table,
  useService,
} from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { inHours, issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

describe.each(keyKinds(rest))("the expiry of an $kind key", ({ path, resource, required, ...of }) => {
  const make = async (fields: Json) => (await of.make(fields)).record;
  const field = (name: string) => `${resource}.${name}`;
  const patch = (keyId: string, body: Json, mask?: string) =>
    rest("PATCH", `${path}/${keyId}${mask === undefined ? "" : `?update_mask=${mask}`}`, body);
  const move = (keyId: string, body: Json) => patch(keyId, body, "expire_time");
  const read = async (keyId: string) => succeeded(await rest("GET", `${path}/${keyId}`));

  test.each(table(["expire_time", "*,expire_time", "name,expire_time"]))(
    "moves back and forward with the mask %s",
    async (mask) => {
      const { key_id: keyId } = await make({ ttl: "2h" });
      for (const hours of [1, 24, 87_599]) {
        const time = inHours(hours);
        const changed = succeeded(await patch(keyId, { name: "moved", expire_time: time }, mask));
        expect(changed.expire_time).toBe(time);
        expect(await read(keyId)).toEqual(changed);
      }
    },
  );

  test("is set by a ttl from now", async () => {
    const { key_id: keyId } = await make({});
    for (const mask of [undefined, "ttl", "expire_time,ttl"]) {
      const before = new Date().toISOString();
      const { expire_time: time, ttl } = succeeded(await patch(keyId, { ttl: "1h" }, mask));
      expect(between(before, time)).toBeGreaterThanOrEqual(3_600_000);
      expect(between(new Date().toISOString(), time)).toBeLessThanOrEqual(3_600_000);
      expect(ttl).toBeUndefined();
    }
  });

  test("changes only by a mask that names it", async () => {
    const { key_id: keyId, expire_time: time } = await make({ ttl: "2h" });
    for (const [body, mask] of [
      [{ name: "a" }, "*"],
      [{ name: "a", expire_time: null }, "*"],
      [{ name: "a", expire_time: null }, undefined],
      [{ name: "a", ttl: null }, undefined],
    ] as const)
      expect(succeeded(await patch(keyId, body, mask)).expire_time).toBe(time);
    for (const mask of ["*", undefined]) {
      const body = { name: "a", expire_time: inHours(9) };
      expect(succeeded(await patch(keyId, body, mask)).expire_time).toBe(time);
    }
    const unnamed = await patch(keyId, { expire_time: inHours(9) });
    expectRefused(unnamed, invalid("update_mask"));
    expect(unnamed.body.error.message).toContain("update_mask: must list expire_time");
    expect(succeeded(await patch(keyId, { name: "b" }, "expire_time"))).not.toHaveProperty("expire_time");
    expect((await read(keyId)).name).toBe("a");
  });

  test("is stored in milliseconds, and never later than asked", async () => {
    const { key_id: keyId } = await make({ expire_time: "2033-01-02T03:04:05.678999999Z" });
    expect((await read(keyId)).expire_time).toBe("2033-01-02T03:04:05.678Z");
    const changed = await move(keyId, { expire_time: "2034-01-02T03:04:05.123456789+02:00" });
    expect(succeeded(changed).expire_time).toBe("2034-01-02T01:04:05.123Z");
    expect(succeeded(await move(keyId, { expire_time: "2034-01-02T01:04:05.123999999Z" })).expire_time).toBe(
      "2034-01-02T01:04:05.123Z",
    );
  });

  const TIMES: readonly (readonly [text: string, reason: string])[] = [
    ["2020-01-01T00:00:00Z", "OUT_OF_RANGE"],
    ["0001-01-01T00:00:00Z", "OUT_OF_RANGE"],
    ["9999-12-31T23:59:59.999999999Z", "OUT_OF_RANGE"],
    ["0000-12-31T23:59:59Z", expect.any(String)],
    ["10000-01-01T00:00:00Z", expect.any(String)],
    ["tomorrow", expect.any(String)],
    ["2031-02-29T00:00:00Z", "INVALID_FORMAT"],
    ["2031-02-28T24:00:00Z", "INVALID_FORMAT"],
  ];

  test.each(table(TIMES))("cannot be %s", async (time, reason) => {
    const key = await make({ ttl: "2h" });
    const { key_id: keyId } = key;
    for (const [answer, name] of [
      [await move(keyId, { expire_time: time }), field("expire_time")],
      [await rest("POST", path, { ...required(), expire_time: time }), "expire_time"],
    ] as const) {
      expectRefused(answer, invalid(name));
      expect(answer.body.error.details[1].field_violations[0].reason).toEqual(reason);
    }
    expect(await read(keyId)).toEqual(key);
  });

  test("cannot be set together with a ttl", async () => {
    const { key_id: keyId } = await make({ ttl: "2h" });
    const both = { ttl: "1h", expire_time: inHours(1) };
    expectRefused(await patch(keyId, both, "ttl,expire_time"), invalid(field("expire_time")));
    expectRefused(await rest("POST", path, { ...required(), ...both }), invalid("expire_time"));
    expectRefused(await patch(keyId, { name: "a" }, "ttl"), invalid("update_mask"));
    expectRefused(await patch(keyId, { ttl: "1h" }, "expire_time"), invalid("update_mask"));
    expectRefused(await patch(keyId, { ttl: "11y" }), invalid(field("ttl")));
  });

  test("does not move once it has passed, nor after a revocation", async () => {
    const expired = await make({ ttl: "2h" });
    await expire(suite, expired.key_id);
    const revoked = await make({ ttl: "2h" });
    await revoke(rest, revoked.key_id);
    for (const [{ key_id: keyId }, reason] of [
      [expired, "API_KEY_EXPIRED"],
      [revoked, "API_KEY_REVOKED"],
    ] as const) {
      const before = await read(keyId);
      for (const body of [{ expire_time: inHours(3) }, { expire_time: "2020-01-01T00:00:00Z" }])
        expectRefused(await move(keyId, body), precondition(reason, keyId));
      expectRefused(await patch(keyId, { ttl: "1h" }), precondition(reason, keyId));
      expectRefused(await patch(keyId, {}, "expire_time"), precondition(reason, keyId));
      expect(await read(keyId)).toEqual(before);
    }
  });

  test("may be sent unchanged", async () => {
    const key = await make({ ttl: "2h" });
    const { update_time: _, ...after } = succeeded(await patch(key.key_id, { ...key, name: "b" }, "*,expire_time"));
    expect(after).toEqual({ ...key, name: "b", update_time: undefined });
  });
});

test("a token is judged by the expiry of its key as it is now, and keeps its own", async () => {
  const { keyId, secret } = await issue(rest, { ttl: "2h" });
  const { token, expire_time: own } = await derive(rest, secret, { ttl: "1h" });
  const { token: nested } = await derive(rest, token);
  const patch = async (fields: Json) =>
    succeeded(await rest("PATCH", `${paths.issued}/${keyId}?update_mask=${Object.keys(fields)}`, fields));
  await patch({ ttl: "30m" });
  for (const one of [token, nested]) expect(await verify(rest, one)).toMatchObject({ is_valid: true });
  await patch({ expire_time: inHours(48) });
  expect((await verify(rest, token)).expire_time).toBe(own);
  const soon = Date.now() + 2_000;
  await patch({ expire_time: new Date(soon).toISOString() });
  await eventually(async () => Date.now() > soon);
  for (const one of [secret, token, nested])
    expect(await verify(rest, one)).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_EXPIRED" });
});

test("a batch imports keys with their own times", async () => {
  const time = inHours(5);
  const item = (fields: Json) => ({ raw_key: newRawKey(), name: "a", actor_id: "b", ...fields });
  const requests = [
    item({ expire_time: time }),
    item({ ttl: "1h", expire_time: time }),
    item({}),
    item({ expire_time: "2020-01-01T00:00:00Z" }),
  ];
  const { results } = succeeded(await rest("POST", `${paths.imported}:batchCreate`, { requests }));
  expect(results[0].imported_api_key.expire_time).toBe(time);
  expect(results[2].imported_api_key).not.toHaveProperty("expire_time");
  for (const index of [1, 3])
    expect(results[index].error_code).toBe("BATCH_CREATE_IMPORTED_API_KEYS_ERROR_INVALID_ARGUMENT");
});

test("a request_id belongs to the time in the request", async () => {
  const [time, other] = [inHours(5), inHours(6)];
  const create = (fields: Json) =>
    rest("POST", paths.issued, { name: "a", actor_id: "b", request_id: "timed", ...fields });
  const first = succeeded(await create({ expire_time: time }));
  expect(succeeded(await create({ expire_time: time })).issued_api_key).toEqual(first.issued_api_key);
  for (const fields of [{}, { expire_time: other }, { ttl: "5h" }])
    expect((await create(fields)).body.error.details[0].reason).toBe("REQUEST_ID_REUSED");
});
