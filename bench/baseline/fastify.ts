import type { FastifyInstance } from "fastify";
import postgres, { type Sql } from "postgres";
import { socketOptions } from "../../test/support/socket-options.ts";

/** The configuration of a baseline. */
export const environment = {
  port: Number(process.env.PORT),
  /** The service's response to the same request, as JSON. */
  answer: process.env.ANSWER ?? "{}",
  databaseUrl: process.env.DATABASE_URL ?? "",
  poolSize: Number(process.env.POOL_SIZE ?? "10"),
};

const strings = { type: "array", items: { type: "string" } };

/** A response schema, as Fastify recommends for fast serialization; it fits every key. */
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

export const keySchema = { response: { 200: { type: "object", properties: record } } };

export const createdSchema = {
  response: {
    200: {
      type: "object",
      properties: { secret: { type: "string" }, issued_api_key: { type: "object", properties: record } },
    },
  },
};

/** Opens a client with the pool size of the service. */
export function openDatabase(): Sql {
  const { databaseUrl, poolSize } = environment;
  return postgres(databaseUrl, { ...socketOptions(databaseUrl), max: poolSize });
}

/** Serves `GET /`, which tells the harness that the server is ready. */
export async function listen(fastify: FastifyInstance): Promise<void> {
  fastify.get("/", async () => ({}));
  await fastify.listen({ host: "127.0.0.1", port: environment.port });
}
