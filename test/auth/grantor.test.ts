import { beforeAll, describe, expect, test } from "vitest";
import { type Expected, expectRefused, importKey, newRawKey, succeeded, table } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { importHashed } from "../support/hashed-keys.ts";
import { type Answer, issue, type Json, paths, type RestClient } from "../support/rest.ts";

/** A caller that expires cannot give a right over Keyhold for longer than it has its own. */

const suite = useGuardedService();
const { rest } = suite;

/** May do everything for an hour. */
let guest: RestClient;
let end: string;
beforeAll(async () => {
  const { secret, record } = await issue(rest, { scopes: ["keyhold:admin"], ttl: "1h" });
  guest = suite.as(secret);
  end = record.expire_time;
});

const SCOPES = ["read", "keyhold:verify"];

function tooLong(): Expected {
  const metadata = { scope: "keyhold:verify", expire_time: new Date(end).toISOString() };
  return { code: 403, status: "PERMISSION_DENIED", reason: "CALLER_NOT_PERMITTED", metadata };
}

const draft = (fields: Json = {}) => ({ name: "n", actor_id: "a", scopes: SCOPES, ...fields });
const later = () => new Date(Date.parse(end) + 1).toISOString();

const lasting = async (fields: Json = {}) => (await issue(rest, { scopes: SCOPES, ...fields })).keyId;
const lastingImport = async () => (await importKey(rest, { scopes: SCOPES })).keyId;
/** Must be adopted before the end, and then expires by these fields. */
const adoptable = async (fields: Json) => {
  const adopt_before_time = new Date(Date.parse(end) - 1_000).toISOString();
  return (await importHashed(rest, { scopes: SCOPES, adopt_before_time, ...fields })).keyId;
};
const patch = (path: string, keyId: string, body: Json, mask?: string) =>
  guest("PATCH", `${path}/${keyId}${mask === undefined ? "" : `?update_mask=${mask}`}`, body);

/** Every way to give a right, or to get at the secret of a key that has one. */
const ATTACKS: readonly (readonly [title: string, attempt: () => Promise<Answer>])[] = [
  ["issues a key without expiry", () => guest("POST", paths.issued, draft())],
  ["issues a key with a longer ttl", () => guest("POST", paths.issued, draft({ ttl: "2h" }))],
  ["issues a key that expires a millisecond later", () => guest("POST", paths.issued, draft({ expire_time: later() }))],
  ["imports a key", () => guest("POST", paths.imported, draft({ raw_key: newRawKey() }))],
  ["renames a lasting key", async () => patch(paths.issued, await lasting(), { name: "mine" })],
  ["renames a lasting imported key", async () => patch(paths.imported, await lastingImport(), { name: "mine" })],
  [
    "renames a key that lives on once it is adopted",
    async () => patch(paths.imported, await adoptable({ expire_time: later() }), { name: "mine" }),
  ],
  ["gives a lasting key the scope", async () => patch(paths.issued, await lasting({ scopes: [] }), { scopes: SCOPES })],
  [
    "gives a lasting imported key the scope",
    async () => patch(paths.imported, (await importKey(rest)).keyId, { scopes: SCOPES }),
  ],
  [
    "extends a key",
    async () => patch(paths.issued, await lasting({ ttl: "10m" }), { expire_time: later() }, "expire_time"),
  ],
  ["extends a key by a ttl", async () => patch(paths.issued, await lasting({ ttl: "10m" }), { ttl: "2h" })],
  ["clears an expiry", async () => patch(paths.issued, await lasting({ ttl: "10m" }), {}, "expire_time")],
  [
    "gives the scope and extends in one call",
    async () => patch(paths.issued, await lasting({ scopes: [], ttl: "10m" }), { scopes: SCOPES, ttl: "2h" }),
  ],
  [
    "rotates a lasting key and reads the secret",
    async () => guest("POST", `${paths.issued}/${await lasting()}:rotate`, {}),
  ],
  [
    "enables a lasting key",
    async () => {
      const keyId = await lasting();
      succeeded(await rest("POST", `${paths.keys}/${keyId}:disable`, {}));
      return guest("POST", `${paths.keys}/${keyId}:enable`, {});
    },
  ],
  [
    "repeats the request of a lasting key",
    async () => {
      const request = draft({ request_id: "lasting" });
      succeeded(await rest("POST", paths.issued, request));
      return guest("POST", paths.issued, request);
    },
  ],
  [
    "repeats its own request for a key that was extended since",
    async () => {
      const request = draft({ request_id: "extended", raw_key: newRawKey(), ttl: "10m" });
      const { key_id: keyId } = succeeded(await guest("POST", paths.imported, request));
      succeeded(await rest("PATCH", `${paths.imported}/${keyId}`, { ttl: "1y" }));
      return guest("POST", paths.imported, request);
    },
  ],
];

test.each(table(ATTACKS))("an expiring administrator who %s is refused", async (_, attempt) => {
  expectRefused(await attempt(), tooLong());
});

test("in a batch, only such items are refused", async () => {
  const items = [draft(), draft({ ttl: "10m" }), draft({ scopes: [] })].map((one) => ({
    ...one,
    raw_key: newRawKey(),
  }));
  const { results } = succeeded(await guest("POST", `${paths.imported}:batchCreate`, { requests: items }));
  expect(results.map((one: Json) => one.error_message ?? "")).toEqual([expect.stringContaining("must expire"), "", ""]);
});

describe("an expiring administrator", () => {
  test("may do all of it for a key that ends no later", async () => {
    const body = succeeded(await guest("POST", paths.issued, draft({ expire_time: end })));
    const { key_id: keyId } = body.issued_api_key;
    for (const answer of [
      await patch(paths.issued, keyId, { name: "as long" }),
      await patch(paths.imported, await adoptable({ expire_time: end }), { name: "as long" }),
      await patch(paths.issued, keyId, { name: "x", scopes: [...SCOPES, "keyhold:derive"], ttl: "30m" }),
      await guest("POST", `${paths.issued}/${keyId}:rotate`, {}),
      await guest("POST", `${paths.keys}/${keyId}:disable`, {}),
      await guest("POST", `${paths.keys}/${keyId}:enable`, {}),
    ])
      succeeded(answer);
  });

  test("may shorten, disable and revoke a lasting key, and take its scopes", async () => {
    succeeded(await patch(paths.issued, await lasting(), { ttl: "5m" }));
    succeeded(await patch(paths.issued, await lasting(), { scopes: ["read"] }));
    const keyId = await lasting();
    succeeded(await guest("POST", `${paths.keys}/${keyId}:disable`, {}));
    succeeded(await guest("POST", `${paths.keys}/${keyId}:revoke`, {}));
  });

  test("may give other scopes for any time", async () => {
    const { issued_api_key: key } = succeeded(await guest("POST", paths.issued, draft({ scopes: ["read"] })));
    succeeded(await patch(paths.issued, key.key_id, { ttl: "1y" }));
    succeeded(await guest("POST", `${paths.issued}/${key.key_id}:rotate`, {}));
  });
});
