/**
 * A Fastify route that verifies keys with better-auth's plugin for API keys, on SQLite or PostgreSQL. Its keys are its own: it issues KEYS of
 * them, and writes them to the file CREDENTIALS, a line each. Rate limits, which are its default, are off: they would reject the load.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { apiKey, defaultKeyHasher } from "@better-auth/api-key";
import { createKyselyAdapter } from "@better-auth/kysely-adapter";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import Fastify from "fastify";
import { Pool } from "pg";
import { environment, listen, verdictSchema } from "../baseline/fastify.ts";
import { KEY } from "../subject/fill.ts";

const { databaseUrl, poolSize } = environment;

/** Rows of an INSERT: SQLite takes 32,766 parameters, and a row has 22. */
const ROWS = 1000;

/** As its users tune it: without the journal mode, each verification would wait for the disk. */
function openSqlite(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  return database;
}

const options = {
  database: databaseUrl.startsWith("postgres")
    ? new Pool({ connectionString: databaseUrl, max: poolSize })
    : openSqlite(databaseUrl),
  baseURL: "http://127.0.0.1",
  secret: "a secret of the benchmark, which protects nothing",
  logger: { disabled: true },
  telemetry: { enabled: false },
  plugins: [apiKey({ rateLimit: { enabled: false }, enableMetadata: true })],
};
await (await getMigrations(options)).runMigrations();
const auth = betterAuth(options);
const { internalAdapter } = await auth.$context;
const { id: userId } = await internalAdapter.createUser(
  { name: KEY.actor_id, email: "actor@example.com" },
  { method: "email" },
);

/** The first one is a template: the plugin issues some hundred a second. */
const { name, metadata } = KEY;
const permissions = { documents: ["read", "write"] };
await auth.api.createApiKey({ body: { userId, name, metadata, permissions } });
const { kysely } = await createKyselyAdapter(options);
if (kysely === null) throw new Error("better-auth does not know this database");
const template = await kysely.selectFrom("apikey").selectAll().executeTakeFirstOrThrow();
const credentials = Array.from({ length: Number(process.env.KEYS) }, () => randomBytes(48).toString("base64url"));
for (let start = 0; start < credentials.length; start += ROWS) {
  const rows = credentials.slice(start, start + ROWS).map(async (credential) => {
    return { ...template, id: randomBytes(24).toString("base64url"), key: await defaultKeyHasher(credential) };
  });
  await kysely
    .insertInto("apikey")
    .values(await Promise.all(rows))
    .execute();
}
writeFileSync(process.env.CREDENTIALS ?? "", credentials.join("\n"));

const fastify = Fastify();
fastify.post<{ Body: { credential: string } }>("/verify", { schema: verdictSchema }, async ({ body }) => {
  const { valid, key } = await auth.api.verifyApiKey({ body: { key: body.credential } });
  if (!valid || key === null) throw new Error("not a key");
  const scopes = Object.entries(key.permissions ?? {}).flatMap(([of, all]) => all.map((one) => `${of}.${one}`));
  return {
    is_valid: true,
    key_id: key.id,
    actor_id: key.referenceId,
    scopes,
    metadata: key.metadata,
    status: "KEY_STATUS_ACTIVE",
    issuer: "keyhold",
    credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY",
  };
});
await listen(fastify);
