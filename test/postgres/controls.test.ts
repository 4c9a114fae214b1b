import { setTimeout as sleep } from "node:timers/promises";
import postgres, { type ISql, type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import type { Quota, RateLimit } from "../../src/domain/rate-limit.ts";
import type { NewKey } from "../../src/keys/ports.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import type { CONTROLS } from "../../src/postgres/cluster/change-feed.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { isAwaited } from "../support/locked-row.ts";
import { noNodes } from "../support/no-cluster.ts";
import { operator } from "../support/principal.ts";
import { newKey, openSchema } from "./new-keys.ts";

/** A database with a store of this release and a client with the rights of a server of an earlier release. */
async function open() {
  const { url, ownerUrl, pool } = await openSchema();
  const [sql, owner] = [postgres(url, { max: 3 }), postgres(ownerUrl, { max: 1 })];
  onTestFinished(async () => void (await Promise.all([sql.end(), owner.end()])));
  const store = createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes));
  const insert = async (key: NewKey) => {
    expect(await store.insert([key])).toMatchObject([{ outcome: "inserted" }]);
    return { keyId: key.key.keyId, kind: null };
  };
  const disable = (name: { keyId: string; kind: null }) =>
    store.change(name, { verb: "disable", reason: null }, operator, new Date());
  return { sql, owner, store, insert, disable };
}

/** Inserts the lease of a node as release 0.1 does. */
function join(sql: ISql) {
  return sql`INSERT INTO nodes (lease_id, name, version, ttl_ms) VALUES (gen_random_uuid(), 'old:1', '0.1.0', 3000)`;
}

function renew(sql: Sql) {
  return sql`UPDATE nodes SET renewals = renewals + 1, renew_time = clock_timestamp()`;
}

async function untilAwaited(sql: Sql): Promise<void> {
  while (!(await isAwaited(sql))) await sleep(5);
}

const REFUSED = { code: "SERVERS_OUTDATED", metadata: { servers: "old:1 (0.1.0)" } };
const NOT_LEASED =
  /a key has the control DISABLED, which server old:1 \(0\.1\.0\) does not apply: start a later release/;

const LIMIT: RateLimit = {
  ...{ name: "requests", quota: 1, window: 1_000, burst: 1 },
  ...{ enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" },
};
const QUOTA: Quota = { name: "monthly", limit: 1, period: "MONTH", anchorTime: 0, adjustTime: null };

/** Controls that a key is created with. A key is disabled later. */
const CREATED_WITH: readonly (readonly [(typeof CONTROLS)[number], Partial<NewKey["key"]>])[] = [
  ["ADDRESS", { allowedCidrs: ["10.0.0.0/8"] }],
  ["ACTORS", { restrictedToActorIds: ["actor_1"] }],
  ["LIMITS", { rateLimits: [LIMIT] }],
  ["LIMITS", { quotas: [QUOTA] }],
];

function withControl(fields: Partial<NewKey["key"]>): NewKey {
  const made = newKey();
  return { ...made, key: { ...made.key, ...fields } };
}

test.each(CREATED_WITH)(
  "%s is not set while a node without it has a lease, and keeps such a node from a lease",
  async (control, fields) => {
    const { sql, store, insert } = await open();
    await join(sql);
    await expect(store.insert([withControl(fields)])).rejects.toMatchObject(REFUSED);
    const many = Array.from({ length: 150 }, () => newKey());
    await expect(store.insert([...many, withControl(fields)])).rejects.toMatchObject(REFUSED);
    const results = await Promise.allSettled([withControl(fields), newKey()].map((key) => store.insert([key])));
    expect(results).toMatchObject([{ status: "rejected", reason: REFUSED }, { status: "fulfilled" }]);
    expect(await sql`SELECT FROM api_keys`).toHaveLength(1);
    await expect(
      sql`UPDATE api_keys SET ${control === "ADDRESS" ? sql`allowed_cidrs` : sql`restricted_to_actor_ids`} = '{}'`,
    ).rejects.toThrow("old:1 (0.1.0)");

    await sql`UPDATE nodes SET verification_checks = ${[control]}`;
    await insert(withControl(fields));
    await renew(sql);
    await sql`DELETE FROM nodes`;
    await expect(join(sql)).rejects.toThrow(`a key has the control ${control}, `);
    await sql`
      INSERT INTO nodes (lease_id, name, version, ttl_ms, verification_checks)
      VALUES (gen_random_uuid(), 'new:1', '0.3.0', 3000, ${[control]})`;
  },
);

test("a key is disabled when the row of the node is deleted, whatever the database's clock says of its lease", async () => {
  const { sql, owner, insert, disable, store } = await open();
  const [one, two] = [await insert(newKey()), await insert(newKey())];
  await join(sql);
  await expect(disable(one)).rejects.toMatchObject(REFUSED);
  await sql`UPDATE nodes SET renew_time = clock_timestamp() - interval '1 hour'`;
  await expect(disable(one)).rejects.toMatchObject(REFUSED);
  await sql`DELETE FROM nodes`;
  await disable(one);
  await expect(join(sql)).rejects.toThrow(NOT_LEASED);

  await store.change(one, { verb: "enable" }, operator, new Date());
  await join(sql);
  // As while a dump is restored.
  await owner`ALTER TABLE api_keys DISABLE TRIGGER key_disabled`;
  await disable(two);
  await owner`ALTER TABLE api_keys ENABLE TRIGGER key_disabled`;
  await expect(renew(sql)).rejects.toThrow(NOT_LEASED);
  // Verification refuses a revoked key by that alone.
  await store.change(two, { verb: "revoke", reason: "UNSPECIFIED", description: null }, operator, new Date());
  await renew(sql);
});

test("a node that joins while a key is being disabled is refused, and one that joins first prevents it", async () => {
  const { sql, insert, disable } = await open();
  const { keyId } = await insert(newKey());
  let joining: Promise<unknown> | undefined;
  await sql.begin(async (tx) => {
    await tx`UPDATE api_keys SET disable_time = now() WHERE key_id = ${keyId}`;
    joining = join(sql).then(
      () => "joined",
      (error) => error.message,
    );
    await untilAwaited(sql);
  });
  expect(await joining).toMatch(NOT_LEASED);

  await sql`UPDATE api_keys SET disable_time = NULL`;
  let disabling: Promise<unknown> | undefined;
  await sql.begin(async (tx) => {
    await join(tx);
    disabling = disable({ keyId, kind: null }).then(
      () => "disabled",
      (error) => error,
    );
    await untilAwaited(sql);
  });
  expect(await disabling).toMatchObject(REFUSED);
});

test.each(["never analyzed", "analyzed"])(
  "a node without a control joins without reading a key, however many were revoked; the table was %s",
  async (statistics) => {
    const { sql, owner } = await open();
    await owner`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id,
        allowed_cidrs, revoke_time, revocation_reason)
      SELECT gen_random_uuid(), 'issued', 'n', 'a', '{}', '{}', '', now(), now(), '', 'k1', '{10.0.0.0/8}', now(), 'REVOCATION_REASON_UNSPECIFIED' FROM generate_series(1, 1000)`;
    // Which summarizes the index.
    await (statistics === "analyzed" ? owner`VACUUM ANALYZE api_keys` : owner`VACUUM api_keys`);
    const read = await sql.begin(async (tx) => {
      await join(tx);
      return tx`
        SELECT relname, pg_stat_get_xact_numscans(oid)::int AS scans,
          pg_stat_get_xact_tuples_returned(oid)::int + pg_stat_get_xact_tuples_fetched(oid)::int AS tuples
        FROM pg_class WHERE pg_stat_get_xact_numscans(oid) > 0 AND relname LIKE 'api_keys%'`;
    });
    const indexes = ["api_keys_with_controls", "api_keys_with_limits"];
    expect(read.toSorted((a, b) => (a.relname < b.relname ? -1 : 1))).toEqual(
      indexes.map((relname) => ({ relname, scans: 1, tuples: 0 })),
    );
  },
);
