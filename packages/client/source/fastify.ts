export * from "../../../src/verifier/fastify.ts";
