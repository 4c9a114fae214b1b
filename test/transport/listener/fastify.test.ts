import { once } from "node:events";
import { get } from "node:http";
import { type FastifyInstance, type FastifyServerOptions, fastify } from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { defaultLimits } from "../../../src/transport/listener/limits.ts";
import { ListenerServer } from "../../../src/transport/listener/server.ts";
import { http2Client, http2Request } from "./support.ts";

async function serve(options: FastifyServerOptions): Promise<FastifyInstance> {
  const app = fastify({
    ...options,
    serverFactory: (listener) => new ListenerServer({ limits: defaultLimits }, listener),
  });
  onTestFinished(() => app.close());
  app.get("/", async () => "answered");
  return app;
}

describe("closing Fastify", () => {
  it("answers a new request with return503OnClosing false", async () => {
    const app = await serve({ return503OnClosing: false });
    const closing = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    app.addHook("preClose", async () => {
      closing.resolve();
      await gate.promise;
    });
    const number = Number(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
    const session = http2Client(number);
    const done = app.close();
    await closing.promise;
    const [http1] = await once(get({ port: number, host: "127.0.0.1", agent: false }), "response");
    expect(http1.statusCode).toBe(200);
    expect((await http2Request(session, { ":path": "/" })).status).toBe(200);
    gate.resolve();
    await done;
  });
});
