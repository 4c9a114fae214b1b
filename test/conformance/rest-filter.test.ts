import { beforeAll, describe, expect, test } from "vitest";
import {
  expectRefused,
  importKey,
  invalid,
  revoke,
  succeeded,
  table,
  useService,
  withQuery,
} from "../support/conformance.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

/** Keys with the names that the filters below expect. */
const KEYS: readonly Json[] = [
  { name: "deploy-a", actor_id: "user_1", scopes: ["read", "write"], metadata: { env: "prod", "team name": "core" } },
  { name: "deploy-b", actor_id: "user_1", scopes: ["read"], metadata: { env: "dev" } },
  { name: "backup", actor_id: 'say "hi" AND bye', scopes: [], ttl: "1h" },
  { name: "old", actor_id: "user_2", scopes: ["write:all"], metadata: { env: "" } },
];

const KINDS = [
  ["issued", paths.issued, async (fields: Json) => (await issue(rest, fields)).record],
  ["imported", paths.imported, async (fields: Json) => (await importKey(rest, fields)).record],
] as const;

const T0 = "2020-01-01T00:00:00Z";

/** Every field and operator at least once; test/keys covers the grammar. */
const FILTERS: readonly (readonly [filter: string, names: string])[] = [
  ["", "deploy-a deploy-b backup old"],
  ["  ", "deploy-a deploy-b backup old"],
  ['actor_id="user_1" AND status=KEY_STATUS_ACTIVE', "deploy-a deploy-b"],
  ['actor_id="user_1"', "deploy-a deploy-b"],
  ["actor_id=user_1", "deploy-a deploy-b"],
  ['actor_id:"user_1"', "deploy-a deploy-b"],
  ['actorId="user_1"', "deploy-a deploy-b"],
  ['actor_id="say \\"hi\\" AND bye"', "backup"],
  ["actor_id='say \"hi\" AND bye'", "backup"],
  ['actor_id!="user_1"', "backup old"],
  ["status=KEY_STATUS_REVOKED", "old"],
  ["status!=KEY_STATUS_REVOKED", "deploy-a deploy-b backup"],
  ["status=KEY_STATUS_EXPIRED", ""],
  ["revocation_reason=REVOCATION_REASON_SUPERSEDED", "old"],
  ["revocation_reason=REVOCATION_REASON_KEY_COMPROMISE", ""],
  ["revocation_reason:*", "old"],
  ['name="deploy-a"', "deploy-a"],
  ['name="deploy-*"', "deploy-a deploy-b"],
  ["name=deploy*", "deploy-a deploy-b"],
  ['name="*"', "deploy-a deploy-b backup old"],
  ['name="deploy-\\*"', ""],
  ['name>"deploy-a"', "deploy-b old"],
  ['name<"deploy-a"', "backup"],
  ["scopes:read", "deploy-a deploy-b"],
  ['scopes:"write"', "deploy-a"],
  ["scopes:write:all", "old"],
  ["-scopes:*", "backup"],
  ['metadata.env="prod"', "deploy-a"],
  ['metadata.env!="prod"', "deploy-b backup old"],
  ["metadata.env:*", "deploy-a deploy-b old"],
  ["metadata:env", "deploy-a deploy-b old"],
  ['metadata."team name"="core"', "deploy-a"],
  [`create_time>"${T0}"`, "deploy-a deploy-b backup old"],
  [`create_time<="${T0}"`, ""],
  [`update_time>=${T0}`, "deploy-a deploy-b backup old"],
  ["expire_time:*", "backup"],
  [`expire_time>"${T0}"`, "backup"],
  [`NOT expire_time>"${T0}"`, "deploy-a deploy-b old"],
  ["last_used_time:*", ""],
  ["NOT name=old", "deploy-a deploy-b backup"],
  ["-name=old", "deploy-a deploy-b backup"],
  ["name=old OR name=backup", "backup old"],
  ["actor_id=user_1 AND (scopes:write OR metadata.env=dev)", "deploy-a deploy-b"],
  ["actor_id=user_1 AND scopes:write OR name=old", "deploy-a"],
  ["actor_id=user_1 scopes:write", "deploy-a"],
  ["NOT (scopes:read OR scopes:write:all)", "backup"],
];

const REFUSED: readonly (readonly [filter: string, position: number])[] = [
  ['owner="user_1"', 1],
  ['secret="x"', 1],
  ["name=a AND owner=b", 12],
  ["actor_id", 9],
  ["actor_id=", 10],
  ['actor_id="user_1', 10],
  ['actor_id="a" status', 20],
  ["(actor_id=a", 1],
  ["actor_id=a)", 11],
  ["actor_id=a AND", 15],
  ["actor_id=a AND AND name=b", 16],
  ["actor_id==a", 10],
  ["status=ACTIV", 8],
  ["status<KEY_STATUS_ACTIVE", 7],
  ["scopes=read", 7],
  ["create_time>yesterday", 13],
  ['actor_id="user_*"', 10],
  ["user_1", 1],
  ["key_id=x", 8],
  ['name="\u{1f511}" AND owner=b', 14],
];

describe.each(table(KINDS))("a filter of %s keys", (_, path, make) => {
  const list = (filter: string) => rest("GET", withQuery(path, { filter }));
  const records: Json[] = [];

  beforeAll(async () => {
    for (const fields of KEYS) records.unshift(await make(fields));
    await revoke(rest, records[0].key_id, { reason: "REVOCATION_REASON_SUPERSEDED" });
  });

  async function names(filter: string): Promise<string[]> {
    const body = succeeded(await list(filter));
    return (body.issued_api_keys ?? body.imported_api_keys).map(({ name }: Json) => name);
  }

  test.each(table(FILTERS))("%s finds %s", async (filter, found) => {
    const newestFirst = found === "" ? [] : found.split(" ").reverse();
    expect(await names(filter)).toEqual(newestFirst);
  });

  test("finds a key by its key_id", async () => {
    expect(await names(`key_id="${records[1].key_id}"`)).toEqual(["backup"]);
    expect(await names(`key_id!=${records[1].key_id.toUpperCase()}`)).toEqual(["old", "deploy-b", "deploy-a"]);
    expect(await names(`key_id<${records[1].key_id}`)).toEqual(["deploy-b", "deploy-a"]);
  });

  test("finds a key by its exact times", async () => {
    const [, { create_time, expire_time }] = records;
    expect(await names(`create_time="${create_time}" AND expire_time="${expire_time}"`)).toEqual(["backup"]);
  });

  test.each(table(REFUSED))("%s is refused at position %d", async (filter, position) => {
    const answer = await list(filter);
    expectRefused(answer, invalid("filter"));
    expect(answer.body.error.message).toContain(` at position ${position} `);
  });

  test("works with pages", async () => {
    const first = succeeded(await rest("GET", withQuery(path, { filter: "actor_id=user_1", page_size: "1" })));
    const query = { filter: "actor_id=user_1", page_size: "1", page_token: first.next_page_token };
    const second = succeeded(await rest("GET", withQuery(path, query)));
    const [a] = first.issued_api_keys ?? first.imported_api_keys;
    const [b] = second.issued_api_keys ?? second.imported_api_keys;
    expect([a.name, b.name, second.next_page_token]).toEqual(["deploy-b", "deploy-a", ""]);
  });
});
