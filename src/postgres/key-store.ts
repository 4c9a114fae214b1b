import type { Fragment, Sql } from "postgres";
import type { Propagation } from "../cluster/propagation.ts";
import { RESERVED_SCOPE_PREFIX } from "../domain/admin-scopes.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { reservedGrants } from "../keys/reserved-scopes.ts";
import type { Insertion, KeyChanges, KeyName, KeyStore, NewKey, Revocation, Rotation } from "../keys/store.ts";
import type { KeyChange } from "../verify/reader.ts";
import { batchGets } from "./batch-gets.ts";
import { batchInserts } from "./batch-inserts.ts";
import { listKeys } from "./list-keys.ts";
import type { Database } from "./pool.ts";
import { type ChangeWork, type Committed, changeRow, commit } from "./propagate.ts";
import { KEY_COLUMNS, type KeyRow, toApiKey } from "./rows.ts";
import { withServer } from "./server-position.ts";

export interface KeyDatabases {
  readonly changes: Database;
  readonly reads: Database;
  /** Without prepared statements: every filter is a statement of another shape, and a connection would keep them all. */
  readonly lists: Database;
}

/**
 * Keys in PostgreSQL. Each change is one statement that tests its condition itself, so that of two at once one wins.
 *
 * A change is over when no server answers by anything from before it, and so is one whose condition did not hold: an earlier one,
 * whose answer was lost, may be the reason for the refusal.
 */
export function createKeyStore({ changes, reads, lists }: KeyDatabases, servers: Servers): KeyStore {
  const { propagation, changed } = servers;
  const changeOf = async (
    statement: string,
    { keyId }: KeyName,
    change: (sql: Sql) => Fragment,
  ): Promise<ApiKey | null> => {
    const isMade = (result: ApiKey | null) => result !== null;
    const work: ChangeWork<ApiKey | null> = async (sql, ranOn) => {
      const row = await changeRow<KeyRow | { key_id: null }>(sql, withServer(sql, change(sql)), ranOn);
      return row.key_id === null ? null : toApiKey(row);
    };
    const committing = commit(changes, propagation, work, { statement, isMade });
    const committed = await committing.finally(() => changed({ keyIds: [keyId], digests: [] }));
    return confirmed(committed, (result) => (isMade(result) ? [keyId] : []));
  };
  const insert = batchInserts(changes, propagation);
  return {
    insert: async (keys) => {
      const inserted = await insert(keys).finally(() => changed(insertionOf(keys)));
      return confirmed(inserted, insertedKeyIds);
    },
    get: batchGets(reads),
    list: (list, now) => lists.run(async (sql) => (await listKeys(sql, list, now)).map(toApiKey), "keys.list"),
    update: (name, changes, principal, now) =>
      changeOf("keys.update", name, (sql) => updateKey(sql, name, changes, principal, now)),
    rotate: (name, rotation, principal, now) =>
      changeOf("keys.rotate", name, (sql) => rotateKey(sql, name, rotation, principal, now)),
    revoke: (name, revocation, principal, now) =>
      changeOf("keys.revoke", name, (sql) => revokeKey(sql, name, revocation, principal, now)),
    delete: async (name, principal) =>
      (await changeOf("keys.delete", name, (sql) => deleteKey(sql, name, principal))) !== null,
  };
}

/** Those that verify, this one among them. The database tells them of every change; this is to be sure that they have heard. */
export interface Servers {
  /** Told of each change that may have been made, failed ones too. For this server alone. */
  changed(change: KeyChange): void;
  readonly propagation: Propagation;
}

/** Resolves with the result when no node answers by anything from before the change. */
async function confirmed<T>(
  { result, confirmed }: Committed<T>,
  changedKeyIds: (result: T) => readonly string[],
): Promise<T> {
  await confirmed.catch((error: unknown) => {
    throw withKeyIds(error, changedKeyIds(result));
  });
  return result;
}

/** Those who wait for one statement share its error. */
function withKeyIds(error: unknown, changedKeyIds: readonly string[]): unknown {
  if (!(error instanceof KeyholdError)) return error;
  return new KeyholdError(error.code, error.message, { cause: error.cause, changedKeyIds });
}

function insertedKeyIds(insertions: readonly Insertion[]): string[] {
  return insertions.flatMap((insertion) => (insertion.outcome === "inserted" ? [insertion.key.keyId] : []));
}

/**
 * A raw key that was looked for in vain is known from now on, under whichever server key it was looked for. An identifier that is
 * new was looked for by nobody, and an issued key is looked for by nothing else.
 */
function insertionOf(keys: readonly NewKey[]): KeyChange {
  const imported = keys.filter(({ key }) => key.kind === "imported");
  return {
    keyIds: [],
    digests: imported.flatMap(({ digest, otherDigests }) => [digest, ...otherDigests].map((one) => one.digest)),
  };
}

function updateKey(sql: Sql, name: KeyName, changes: KeyChanges, principal: Principal, now: Date) {
  return sql`
    UPDATE api_keys SET update_time = ${forward(sql, now)}
      ${changes.name === undefined ? sql`` : sql`, name = ${changes.name}`}
      ${changes.scopes === undefined ? sql`` : sql`, scopes = ${[...changes.scopes]}::text[]`}
      ${changes.metadata === undefined ? sql`` : sql`, metadata = ${sql.json({ ...changes.metadata })}`}
    WHERE ${keyWhere(sql, name, [active(sql, now), handledBy(sql, principal)])}
    RETURNING ${sql(KEY_COLUMNS)}`;
}

function rotateKey(sql: Sql, name: KeyName, rotation: Rotation, principal: Principal, now: Date) {
  const inGrace = sql`(
    SELECT coalesce(jsonb_agg(secret ORDER BY (secret ->> 'version')::integer DESC), '[]')
    FROM jsonb_array_elements(previous_secrets) AS secret WHERE (secret ->> 'expire_time')::timestamptz > ${now})`;
  const replaced = sql`jsonb_build_array(jsonb_build_object(
    'version', secret_version, 'digest', encode(digest, 'hex'), 'digest_key_id', digest_key_id,
    'expire_time', ${rotation.graceEnd}::timestamptz))`;
  const room = rotation.graceEnd === null ? [] : [sql`jsonb_array_length(${inGrace}) < ${rotation.maxGraceSecrets}`];
  return sql`
    UPDATE api_keys SET
      secret_version = secret_version + 1,
      digest = ${rotation.digest.digest}, digest_key_id = ${rotation.digest.keyId}, hint = ${rotation.hint},
      previous_secrets = ${rotation.graceEnd === null ? sql`'[]'` : sql`${replaced} || ${inGrace}`},
      rotate_time = ${now}, update_time = ${forward(sql, now)}
    WHERE ${keyWhere(sql, name, [active(sql, now), handledBy(sql, principal), ...room])}
    RETURNING ${sql(KEY_COLUMNS)}`;
}

function revokeKey(sql: Sql, name: KeyName, { reason, description }: Revocation, principal: Principal, now: Date) {
  return sql`
    UPDATE api_keys SET
      revoke_time = ${now}, update_time = ${forward(sql, now)}, revocation_reason = ${reason}, revocation_description = ${description}
    WHERE ${keyWhere(sql, name, [sql`revoke_time IS NULL`, handledBy(sql, principal)])}
    RETURNING ${sql(KEY_COLUMNS)}`;
}

function deleteKey(sql: Sql, name: KeyName, principal: Principal) {
  return sql`
    DELETE FROM api_keys WHERE ${keyWhere(sql, name, [handledBy(sql, principal)])}
    RETURNING ${sql(KEY_COLUMNS)}`;
}

/**
 * The row of this key, if all conditions hold for it. They stand in a CASE, so that the planner can use no index for them
 * (PostgreSQL docs, 4.2.14): beside `kind = …` it may prefer an index that begins with `kind` to the primary key, while a table is
 * small or has no statistics of that kind, and then reads every key of the kind.
 */
function keyWhere(sql: Sql, { keyId, kind }: KeyName, conditions: readonly Fragment[]): Fragment {
  const all = kind === null ? conditions : [sql`kind = ${kind}`, ...conditions];
  const joined = all.map((condition, index) => (index === 0 ? condition : sql`AND ${condition}`));
  return sql`key_id = ${keyId} AND CASE WHEN ${joined} THEN true ELSE false END`;
}

/** Of two changes the later one may have begun first, or on a server whose clock is behind. */
function forward(sql: Sql, now: Date): Fragment {
  return sql`greatest(update_time, ${now})`;
}

function active(sql: Sql, now: Date): Fragment {
  return sql`(revoke_time IS NULL AND (expire_time IS NULL OR expire_time > ${now}))`;
}

/** `requireReservedScopes`, for the scopes that the row has when it is changed. */
function handledBy(sql: Sql, principal: Principal): Fragment {
  const grants = reservedGrants(principal);
  if (grants === "all") return sql`true`;
  return sql`NOT EXISTS (
    SELECT FROM unnest(scopes) AS scope
    WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX}) AND scope <> ALL (${[...grants]}::text[]))`;
}
