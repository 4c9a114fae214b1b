/** A Fastify route that inserts the row that creating a key inserts: one statement and one commit per request. */
import { randomBytes } from "node:crypto";
import Fastify from "fastify";
import { v7 as uuidv7 } from "uuid";
import { createdSchema, listen, openDatabase } from "./fastify.ts";

interface Body {
  name: string;
  actor_id: string;
  scopes: string[];
  metadata: Record<string, string>;
}

const sql = openDatabase();
const fastify = Fastify();
fastify.post<{ Body: Body }>("/create", { schema: createdSchema }, async ({ body }) => {
  const [now, key_id, digest] = [new Date(), uuidv7(), randomBytes(32)];
  const { name, actor_id, scopes, metadata } = body;
  const hint = "kh_v1_…abcd";
  await sql`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
    VALUES (${key_id}, 'issued', ${name}, ${actor_id}, ${scopes}, ${sql.json(metadata)}, ${hint}, ${now}, ${now},
      ${digest}, 'bench')`;
  const time = now.toISOString();
  const issued_api_key = { key_id, ...body, status: "KEY_STATUS_ACTIVE", create_time: time, update_time: time, hint };
  return { secret: randomBytes(56).toString("base64url"), issued_api_key };
});
await listen(fastify);
