/** Fastify with one route and nothing else. */
import Fastify from "fastify";

const fastify = Fastify();
fastify.get("/", async () => ({}));
await fastify.listen({ host: "127.0.0.1", port: Number(process.env.PORT) });
