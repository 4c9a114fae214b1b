/** Fastify with a single route. */
import Fastify from "fastify";

const fastify = Fastify();
fastify.get("/", async () => ({}));
await fastify.listen({ host: "127.0.0.1", port: Number(process.env.PORT) });
