import type { Database } from "./pool.ts";

/** Records that a server has this root secret as its current one; `digestKeyId` is the id of its key for digests. */
export function recordRootSecretUse(database: Database, digestKeyId: string): Promise<void> {
  return database.run(async (sql) => {
    await sql`INSERT INTO used_root_secrets (digest_key_id) VALUES (${digestKeyId}) ON CONFLICT DO NOTHING`;
  }, "used_root_secrets.insert");
}

/** Returns the ids of the root secrets that were ever the current one of a server. */
export function listUsedRootSecrets(database: Database): Promise<ReadonlySet<string>> {
  return database.run(async (sql) => {
    const rows = await sql<{ digest_key_id: string }[]>`SELECT digest_key_id FROM used_root_secrets`;
    return new Set(rows.map(({ digest_key_id }) => digest_key_id));
  }, "used_root_secrets.list");
}
