/** A Fastify route that reads one row with one prepared SELECT, by the driver of the service. */
import Fastify from "fastify";
import { listen, openDatabase, verdictSchema } from "./fastify.ts";

interface Row {
  key_id: string;
  actor_id: string;
  scopes: string[];
  metadata: Record<string, string>;
  expire_time: Date | null;
}

const sql = openDatabase();
const fastify = Fastify();
fastify.post<{ Body: { key_id: string } }>("/verify", { schema: verdictSchema }, async ({ body }) => {
  const [row] = await sql<Row[]>`
    SELECT key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, last_used_time,
      rotate_time, revoke_time, revocation_reason, revocation_description, secret_version, digest, digest_key_id,
      previous_secrets
    FROM api_keys WHERE key_id = ${body.key_id}`;
  if (row === undefined) throw new Error("no such key");
  const { expire_time, ...key } = row;
  return {
    is_valid: true,
    ...key,
    ...(expire_time === null ? {} : { expire_time: expire_time.toISOString() }),
    status: "KEY_STATUS_ACTIVE",
    issuer: "keyhold",
    credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY",
  };
});
await listen(fastify);
