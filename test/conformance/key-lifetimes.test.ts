import { beforeAll, describe, expect, test } from "vitest";
import {
  between,
  expectRefused,
  importKey,
  invalid,
  newRawKey,
  succeeded,
  useService,
} from "../support/conformance.ts";
import { runKeyhold } from "../support/keyhold.ts";
import { issue, type Json, paths } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** KEYHOLD_MAX_KEY_TTL, KEYHOLD_DEFAULT_KEY_TTL, and the lifetime of admin tokens. */

const suite = useService();
const { rest } = suite;

const DAY = 86_400_000;

/** Created before there was a maximum: without expiry, and for a year. */
let endless: Json;
let long: Json;
beforeAll(async () => {
  endless = (await issue(rest)).record;
  long = (await issue(rest, { ttl: "1y" })).record;
});

const lifeOf = ({ create_time: from, expire_time: to }: Json) => between(from, to);
const patch = (keyId: string, body: Json, mask = "", path: string = paths.issued) =>
  rest("PATCH", `${path}/${keyId}${mask && `?update_mask=${mask}`}`, body);
const daysAfter = (from: string, days: number, more = 0) =>
  new Date(Date.parse(from) + days * DAY + more).toISOString();

describe("with a maximum", () => {
  beforeAll(() => suite.server.restart({ KEYHOLD_MAX_KEY_TTL: "90d" }));

  test("a key without a lifetime has the longest", async () => {
    expect(lifeOf((await issue(rest)).record)).toBe(90 * DAY);
    expect(lifeOf((await importKey(rest)).record)).toBe(90 * DAY);
    const requests = [{ raw_key: newRawKey(), name: "n", actor_id: "a" }];
    const { results } = succeeded(await rest("POST", `${paths.imported}:batchCreate`, { requests }));
    expect(lifeOf(results[0].imported_api_key)).toBe(90 * DAY);
  });

  test("none is created with a longer one", async () => {
    const fields = { name: "n", actor_id: "a", raw_key: undefined as string | undefined };
    for (const path of [paths.issued, paths.imported]) {
      if (path === paths.imported) fields.raw_key = newRawKey();
      expectRefused(await rest("POST", path, { ...fields, ttl: "2161h" }), invalid("ttl"));
      const time = new Date(Date.now() + 91 * DAY).toISOString();
      expectRefused(await rest("POST", path, { ...fields, expire_time: time }), invalid("expire_time"));
    }
    expect(lifeOf((await issue(rest, { ttl: "90d" })).record)).toBe(90 * DAY);
  });

  test("an update may extend up to the maximum from the creation, and not clear", async () => {
    for (const [collection, create] of [
      ["issued", issue],
      ["imported", importKey],
    ] as const) {
      const { key_id: keyId, create_time: created } = (await create(rest, { ttl: "1d" })).record;
      const update = (body: Json) => patch(keyId, body, "expire_time", paths[collection]);
      succeeded(await update({ expire_time: daysAfter(created, 90) }));
      const refused = invalid(`${collection}_api_key.expire_time`);
      expectRefused(await update({ expire_time: daysAfter(created, 90, 1) }), refused);
      expectRefused(await update({}), refused);
      expect(lifeOf(succeeded(await rest("GET", `${paths[collection]}/${keyId}`)))).toBe(90 * DAY);
    }
  });

  test("a key that lives longer already may be sent as it is, and shortened", async () => {
    for (const { key_id: keyId, ...key } of [endless, long]) {
      expect(succeeded(await patch(keyId, { ...key, name: "b" }, "*,expire_time")).expire_time).toBe(key.expire_time);
      const shorter = daysAfter(key.create_time, 364);
      succeeded(await patch(keyId, { expire_time: shorter }, "expire_time"));
      const longer = daysAfter(key.create_time, 364, 1);
      expectRefused(await patch(keyId, { expire_time: longer }, "expire_time"), invalid("issued_api_key.expire_time"));
    }
  });
});

test("with a default, a key without a lifetime has that", async () => {
  await suite.server.restart({ KEYHOLD_MAX_KEY_TTL: "90d", KEYHOLD_DEFAULT_KEY_TTL: "30d" });
  expect(lifeOf((await issue(rest)).record)).toBe(30 * DAY);
  const request = { name: "n", actor_id: "a", request_id: "by-default" };
  const first = succeeded(await rest("POST", paths.issued, request));
  await suite.server.restart({ KEYHOLD_DEFAULT_KEY_TTL: "10d" });
  expect(lifeOf((await issue(rest)).record)).toBe(10 * DAY);
  // The request has not changed, although the default has.
  expect(succeeded(await rest("POST", paths.issued, request)).issued_api_key).toEqual(first.issued_api_key);
  const { key_id: keyId } = first.issued_api_key;
  expect(succeeded(await patch(keyId, {}, "expire_time"))).not.toHaveProperty("expire_time");
});

describe("admin token create", () => {
  const create = async (environment: Record<string, string>, ...args: string[]) => {
    const { code, stdout, stderr } = await runKeyhold(["admin", "token", "create", "--name", "t", "--json", ...args], {
      ...{ KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET },
      ...environment,
    });
    return code === 0 ? JSON.parse(stdout).issued_api_key : { code, stderr };
  };

  test("gives a life of 90 days, unless told otherwise", async () => {
    const [usual, none, own, capped, refused] = await Promise.all([
      create({ KEYHOLD_DEFAULT_KEY_TTL: "1d" }),
      create({ KEYHOLD_DEFAULT_KEY_TTL: "1d" }, "--ttl", "none"),
      create({}, "--ttl", "1y"),
      create({ KEYHOLD_MAX_KEY_TTL: "7d" }),
      create({ KEYHOLD_MAX_KEY_TTL: "7d" }, "--ttl", "none"),
    ]);
    expect([lifeOf(usual), lifeOf(own), lifeOf(capped)]).toEqual([90 * DAY, 365 * DAY, 7 * DAY]);
    expect(none).not.toHaveProperty("expire_time");
    expect(none.created_by).toMatch(/^local:uid /);
    expect(refused).toMatchObject({ code: expect.any(Number), stderr: expect.stringContaining("KEYHOLD_MAX_KEY_TTL") });
  });
});
