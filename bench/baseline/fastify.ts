import type { FastifyInstance } from "fastify";
import postgres, { type Sql } from "postgres";
import { socketOptions } from "../../test/support/socket-options.ts";

/** What a baseline is started with. */
export const environment = {
  port: Number(process.env.PORT),
  /** The answer that the service gives for the same request, as JSON. */
  answer: process.env.ANSWER ?? "{}",
  databaseUrl: process.env.DATABASE_URL ?? "",
  poolSize: Number(process.env.POOL_SIZE ?? "10"),
};

const strings = { type: "array", items: { type: "string" } };

/** The same for every key: Fastify's users give it schemas, so that it writes JSON fast. */
const record = {
  key_id: { type: "string" },
  name: { type: "string" },
  actor_id: { type: "string" },
  scopes: strings,
  metadata: { type: "object", additionalProperties: { type: "string" } },
  status: { type: "string" },
  create_time: { type: "string" },
  update_time: { type: "string" },
  expire_time: { type: "string" },
  hint: { type: "string" },
};

export const verdictSchema = {
  response: {
    200: {
      type: "object",
      properties: {
        is_valid: { type: "boolean" },
        ...record,
        issuer: { type: "string" },
        credential_type: { type: "string" },
      },
    },
  },
};

export const createdSchema = {
  response: {
    200: {
      type: "object",
      properties: { secret: { type: "string" }, issued_api_key: { type: "object", properties: record } },
    },
  },
};

/** With a client of the same pool size as the service has. */
export function openDatabase(): Sql {
  const { databaseUrl, poolSize } = environment;
  return postgres(databaseUrl, { ...socketOptions(databaseUrl), max: poolSize });
}

/** Answers `GET /` when it is ready. */
export async function listen(fastify: FastifyInstance): Promise<void> {
  fastify.get("/", async () => ({}));
  await fastify.listen({ host: "127.0.0.1", port: environment.port });
}
