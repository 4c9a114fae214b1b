import { beforeAll, describe, expect, test } from "vitest";
import {
  expectRefused,
  invalid,
  keyKinds,
  recordsOf,
  revoke,
  succeeded,
  table,
  useService,
  withQuery,
} from "../support/conformance.ts";
import type { Json } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

/** Keys with the names that the filters below expect. */
const KEYS: readonly Json[] = [
  { name: "deploy-a", actor_id: "user_1", scopes: ["read", "write"], metadata: { env: "prod", "team name": "core" } },
  { name: "deploy-b", actor_id: "user_1", scopes: ["read"], metadata: { env: "dev" } },
  { name: "backup", actor_id: 'say "hi" AND bye', scopes: [], ttl: "1h" },
  { name: "old", actor_id: "user_2", scopes: ["write:all"], metadata: { env: "" } },
];

const T0 = "2020-01-01T00:00:00Z";

/** test/keys/filter has the grammar, and test/postgres/filter.test.ts each field and operator. */
const FILTERS: readonly (readonly [filter: string, names: string])[] = [
  ["", "deploy-a deploy-b backup old"],
  ["  ", "deploy-a deploy-b backup old"],
  ['actor_id="user_1" AND status=KEY_STATUS_ACTIVE', "deploy-a deploy-b"],
  ['actor_id="say \\"hi\\" AND bye"', "backup"],
  ["status=KEY_STATUS_REVOKED", "old"],
  ["revocation_reason=REVOCATION_REASON_SUPERSEDED", "old"],
  ['name="deploy-*"', "deploy-a deploy-b"],
  ["scopes:write:all", "old"],
  ['metadata."team name"="core"', "deploy-a"],
  [`expire_time>"${T0}"`, "backup"],
  ["last_used_time:*", ""],
  ["actor_id=user_1 AND (scopes:write OR metadata.env=dev)", "deploy-a deploy-b"],
  ["NOT (scopes:read OR scopes:write:all)", "backup"],
];

const REFUSED: readonly (readonly [filter: string, position: number])[] = [
  ["name=a AND owner=b", 12],
  ['actor_id="user_1', 10],
  ["create_time>yesterday", 13],
  ['name="\u{1f511}" AND owner=b', 14],
];

describe.each(keyKinds(rest))("a filter of $kind keys", ({ path, make }) => {
  const list = (filter: string) => rest("GET", withQuery(path, { filter }));
  const records: Json[] = [];

  beforeAll(async () => {
    for (const fields of KEYS) records.unshift((await make(fields)).record);
    await revoke(rest, records[0].key_id, { reason: "REVOCATION_REASON_SUPERSEDED" });
  });

  async function names(filter: string): Promise<string[]> {
    return recordsOf(succeeded(await list(filter))).map(({ name }) => name);
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
});
