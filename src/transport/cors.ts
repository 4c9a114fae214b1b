import { cors as connectCors } from "@connectrpc/connect";
import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

/** Seconds for which a browser may keep the answer to a preflight: as long as any browser does. */
const PREFLIGHT_MAX_AGE = 7200;

/** Lets the scripts of web pages of these origins call (CORS); of none, where there are none. */
export async function allowOrigins(fastify: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  await fastify.register(cors, {
    origin: [...origins],
    methods: [...connectCors.allowedMethods, "PATCH", "DELETE"],
    allowedHeaders: [...connectCors.allowedHeaders, "Authorization", "Cache-Control", "X-Request-Id"],
    exposedHeaders: [...connectCors.exposedHeaders, "ETag", "Retry-After", "WWW-Authenticate", "X-Request-Id"],
    maxAge: PREFLIGHT_MAX_AGE,
  });
}
