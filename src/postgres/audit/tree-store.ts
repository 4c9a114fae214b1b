import type { Sql } from "postgres";
import type { Growth, TreeHead, TreeStore } from "../../audit/tree/tree.ts";
import type { TreeKey } from "../../audit/tree/tree-key.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** Creates the store of the audit log's tree in PostgreSQL. */
export function createTreeStore(database: Database): TreeStore {
  return {
    head: () => database.run(readHead, "audit.tree_head"),
    addKey: async (key) => {
      await database.run(
        (sql) => sql`INSERT INTO audit_tree_key ${sql({ ...key })} ON CONFLICT DO NOTHING RETURNING ${ownSession(sql)}`,
        "audit.add_tree_key",
      );
    },
    rewrapKey: async ({ verifierKey, wrapped, wrapKeyId }, before) => {
      await database.run(
        (sql) => sql`
          UPDATE audit_tree_key SET wrapped = ${wrapped}, wrap_key_id = ${wrapKeyId}
          WHERE verifier_key = ${verifierKey} AND wrap_key_id = ${before} AND ${ownSession(sql)}`,
        "audit.rewrap_tree_key",
      );
    },
    tile: async ({ level, index }) => {
      const rows = await database.run(
        (sql) => sql<{ hashes: Uint8Array }[]>`
          SELECT hashes FROM audit_tiles WHERE level = ${level} AND index = ${index} AND ${ownSession(sql)}`,
        "audit.tile",
      );
      return rows[0]?.hashes ?? new Uint8Array();
    },
    grow: (growth) => database.run((sql) => grow(sql, growth), "audit.grow"),
    recordCheckpoint: () => database.run(recordCheckpoint, "audit.checkpoint"),
  };
}

/** Reads the head, and the key if there is one; the command line shows what a root secret protects without the rest. */
export async function readHead(sql: Sql): Promise<TreeHead> {
  const rows = await sql<(Omit<TreeHead, "key"> & { [Name in keyof TreeKey]: TreeKey[Name] | null })[]>`
    SELECT origin, audit_tree.size::numeric AS size, audit_log.size::numeric AS log_size, checkpoint, verifier_key, wrapped, wrap_key_id
    FROM audit_tree CROSS JOIN audit_log LEFT JOIN audit_tree_key ON true WHERE ${ownSession(sql)}`;
  const { verifierKey, wrapped, wrapKeyId, ...head } = firstRow(rows);
  const key =
    verifierKey === null || wrapped === null || wrapKeyId === null ? null : { verifierKey, wrapped, wrapKeyId };
  return { ...head, key };
}

async function recordCheckpoint(sql: Sql): Promise<boolean> {
  const rows = await sql<{ isRecorded: boolean }[]>`SELECT audit_checkpoint() AS is_recorded WHERE ${ownSession(sql)}`;
  return firstRow(rows).isRecorded;
}

async function grow(sql: Sql, { from, to, tiles, checkpoint }: Growth): Promise<boolean> {
  const hex = tiles.map(({ hashes, ...position }) => ({ ...position, hashes: Buffer.concat(hashes).toString("hex") }));
  const rows = await sql<{ grown: boolean }[]>`
    SELECT audit_grow(${from}, ${to}, ${JSON.stringify(hex)}::text::jsonb, ${checkpoint}) AS grown WHERE ${ownSession(sql)}`;
  return firstRow(rows).grown;
}
