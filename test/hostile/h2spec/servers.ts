import { readFile } from "node:fs/promises";
import { createSecureServer, createServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { pino } from "pino";
import type { Certificate } from "../../../src/transport/listener/acceptor.ts";
import { createServer as createKeyhold } from "../../../src/transport/server.ts";
import { bareServer } from "../../support/bare-server.ts";
import { listenLocally } from "../../support/listen.ts";
import { operator } from "../../support/principal.ts";
import { H2SPEC_PATH, type H2specTarget } from "./suite.ts";

export interface H2specServer extends H2specTarget {
  readonly name: string;
  close(): Promise<void>;
}

const tlsFolder = resolve(import.meta.dirname, "../../support/tls");

/**
 * Starts Keyhold's transport and plain `node:http2` for comparison, each without and with TLS. They answer a request at its end, because
 * frames after a complete response would be ignored.
 */
export async function startServers(): Promise<{
  readonly ours: readonly H2specServer[];
  readonly references: readonly H2specServer[];
}> {
  const read = (name: string) => readFile(resolve(tlsFolder, `localhost.${name}.pem`));
  const certificate = { cert: await read("cert"), key: await read("key") };
  return {
    ours: [await startOurs("Keyhold"), await startOurs("Keyhold with TLS", certificate)],
    references: [await startReference("node:http2"), await startReference("node:http2 with TLS", certificate)],
  };
}

async function startOurs(name: string, certificate?: Certificate): Promise<H2specServer> {
  const fastify = await createKeyhold({
    ...bareServer(),
    guard: () => operator,
    logger: pino({ level: "silent" }),
    certificate,
  });
  fastify.all(H2SPEC_PATH, async ({ raw }) => {
    await buffer(raw);
    return "ok";
  });
  const url = await fastify.listen({ host: "127.0.0.1", port: 0, listenTextResolver: () => "" });
  const tls = certificate !== undefined;
  return { name, port: Number(new URL(url).port), tls, close: async () => void (await fastify.close()) };
}

async function startReference(name: string, certificate?: Certificate): Promise<H2specServer> {
  const answer = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    request.resume().once("end", () => response.end("ok"));
  };
  const server = certificate === undefined ? createServer(answer) : createSecureServer(certificate, answer);
  const port = await listenLocally(server);
  const close = async () => {
    await new Promise((done) => server.close(done));
  };
  return { name, port, tls: certificate !== undefined, close };
}
