import { decodeJwt } from "jose";
import { afterEach, describe, expect, test } from "vitest";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { succeeded, table, useService, withQuery } from "../support/conformance.ts";
import { issue, type Json, paths } from "../support/rest.ts";
import { rpcPath, send } from "../support/wire.ts";

const suite = useService();
const JSON_TYPE = { "content-type": "application/json" };

/** Names with a meaning on every JavaScript object. */
const NAMES = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "__defineGetter__",
  "then",
  "toJSON",
];
const METADATA = Object.fromEntries(NAMES.map((name) => [name, `the ${name}`]));
const METADATA_JSON = JSON.stringify(METADATA);

/** The service runs in this process, so a polluted prototype is visible here. */
afterEach(() => {
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

function expectMetadata(record: Json): void {
  expect(Object.entries(record.metadata).sort()).toEqual(Object.entries(METADATA).sort());
}

test("metadata named like object members are stored and returned unchanged", async () => {
  const body = `{"name":"a","actor_id":"a","metadata":${METADATA_JSON}}`;
  const created = succeeded(await send(suite.server.url + paths.issued, "POST", body, JSON_TYPE));
  expectMetadata(created.issued_api_key);
  const { key_id } = created.issued_api_key;
  expectMetadata(succeeded(await suite.rest("GET", `${paths.issued}/${key_id}`)));
  expectMetadata(succeeded(await suite.rest("POST", `${paths.keys}:verify`, { credential: created.secret })));
  const listed = succeeded(await suite.rest("GET", withQuery(paths.issued, { filter: `key_id="${key_id}"` })));
  expectMetadata(listed.issued_api_keys[0]);
  const [row] = await suite.sql`SELECT metadata::text FROM api_keys WHERE key_id = ${key_id}`;
  expectMetadata({ metadata: JSON.parse(row?.metadata) });
});

test("metadata with such names survive an update, an import, a batch and Connect", async () => {
  const { keyId } = await issue(suite.rest);
  const asJson = (method: string, path: string, body: string) => send(suite.server.url + path, method, body, JSON_TYPE);
  expectMetadata(succeeded(await asJson("PATCH", `${paths.issued}/${keyId}`, `{"metadata":${METADATA_JSON}}`)));
  const key = (rawKey: string) => `{"name":"a","actor_id":"a","raw_key":"${rawKey}","metadata":${METADATA_JSON}}`;
  expectMetadata(succeeded(await asJson("POST", paths.imported, key("objects-1"))));
  const batch = await asJson("POST", `${paths.imported}:batchCreate`, `{"requests":[${key("objects-2")}]}`);
  expectMetadata(succeeded(batch).results[0].imported_api_key);
  const create = rpcPath(IssuedApiKeysService.method.createIssuedApiKey);
  const connect = await asJson("POST", create, `{"name":"a","actor_id":"a","metadata":${METADATA_JSON}}`);
  expectMetadata(succeeded(connect).issued_api_key);
});

test.each(table(NAMES))("a filter finds the entry %s of the metadata", async (name) => {
  const { keyId } = await issue(suite.rest, { metadata: Object.fromEntries([[name, `only ${name}`]]) });
  const found = async (filter: string) => {
    const { issued_api_keys } = succeeded(await suite.rest("GET", withQuery(paths.issued, { filter })));
    return issued_api_keys.map((key: Json) => key.key_id);
  };
  expect(await found(`metadata.${name}="only ${name}"`)).toEqual([keyId]);
  expect(await found(`metadata:${name} AND key_id="${keyId}"`)).toEqual([keyId]);
  expect(await found(`metadata.${name}="nothing"`)).toEqual([]);
});

const CLAIMS =
  '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"prototype":[1],"toJSON":"a","then":1}';

describe.each(["TOKEN_ALGORITHM_JWT", "TOKEN_ALGORITHM_MACAROON"])(
  "claims named like object members in a %s",
  (algorithm) => {
    const derive = async (credential: string, claims: string) => {
      const body = `{"credential":"${credential}","algorithm":"${algorithm}","custom_claims":${claims}}`;
      return succeeded(await send(`${suite.server.url}${paths.keys}:derive`, "POST", body, JSON_TYPE)).token;
    };

    test("are kept, also in a token derived from the token", async () => {
      const { secret } = await issue(suite.rest);
      const token = await derive(secret, CLAIMS);
      expect(sorted(token.claims)).toEqual(sorted(JSON.parse(CLAIMS)));
      const narrower = await derive(token.token, '{"valueOf":"b"}');
      expect(sorted(narrower.claims)).toEqual(sorted(JSON.parse(CLAIMS.replace("{", '{"valueOf":"b",'))));
      const verdict = succeeded(await suite.rest("POST", `${paths.keys}:verify`, { credential: narrower.token }));
      expect(verdict.is_valid).toBe(true);
    });

    test("may not contradict the token that they are derived from", async () => {
      const { secret } = await issue(suite.rest);
      const token = await derive(secret, CLAIMS);
      const body = `{"credential":"${token.token}","algorithm":"${algorithm}","custom_claims":{"__proto__":{"admin":true}}}`;
      const refused = await send(`${suite.server.url}${paths.keys}:derive`, "POST", body, JSON_TYPE);
      expect(refused.status).toBe(403);
    });
  },
);

test("a JWT carries such claims unchanged", async () => {
  const { secret } = await issue(suite.rest);
  const body = `{"credential":"${secret}","algorithm":"TOKEN_ALGORITHM_JWT","custom_claims":${CLAIMS}}`;
  const { token } = succeeded(await send(`${suite.server.url}${paths.keys}:derive`, "POST", body, JSON_TYPE));
  const claims = sorted(decodeJwt(token.token));
  for (const claim of sorted(JSON.parse(CLAIMS))) expect(claims).toContainEqual(claim);
});

const POLLUTING = [
  '{"name":"a","actor_id":"a","__proto__":{"polluted":true}}',
  '{"name":"a","actor_id":"a","constructor":{"prototype":{"polluted":true}}}',
  '{"__proto__":{"name":"a","actor_id":"a"}}',
  '{"name":"a","actor_id":"a","metadata":{"__proto__":{"polluted":"true"}}}',
  '{"name":"a","actor_id":"a","scopes":{"__proto__":[]}}',
];

test.each(table(POLLUTING))("the body %s is refused and pollutes nothing", async (body) => {
  const [before] = await suite.sql`SELECT count(*) FROM api_keys`;
  for (const path of [paths.issued, rpcPath(IssuedApiKeysService.method.createIssuedApiKey)]) {
    expect((await send(suite.server.url + path, "POST", body, JSON_TYPE)).status).toBe(400);
  }
  const [after] = await suite.sql`SELECT count(*) FROM api_keys`;
  expect(after).toEqual(before);
});

/** `toEqual` ignores a member named `__proto__`. */
function sorted(claims: Json): [string, string][] {
  return Object.entries(claims)
    .map(([name, value]): [string, string] => [name, JSON.stringify(value)])
    .sort();
}
