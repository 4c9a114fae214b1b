import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { invalidArgument } from "../domain/errors.ts";
import type { Certificate } from "../transport/listener/acceptor.ts";
import { createGatewayServer, createServer, type ServerOptions } from "../transport/server.ts";
import type { Config } from "./config/config.ts";
import { type Address, cannotListen } from "./listening.ts";

/**
 * Listens on the port of the service, and on that for gateways if they have their own: then only that one serves their endpoints. `close`
 * stops accepting connections, and finishes calls in flight.
 */
export async function openPorts(config: Config, options: Omit<ServerOptions, "certificate">) {
  const { address } = config.gateways;
  const certificate = await readCertificate(config);
  const ofGateways = address === null ? undefined : await createGatewayServer({ ...options, certificate });
  const withoutGateways = { certificate: certificate && { ...certificate, clientCa: undefined }, gateways: undefined };
  const service = await createServer({ ...options, ...(ofGateways === undefined ? { certificate } : withoutGateways) });
  const close = async () => {
    await Promise.all([service.close(), ofGateways?.close()]);
  };
  try {
    const url = await listen(service, config, "KEYHOLD", config);
    const gatewayUrl =
      ofGateways && address !== null ? await listen(ofGateways, address, "KEYHOLD_GATEWAY", config) : undefined;
    return { url, gatewayUrl, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Returns the URL. `prefix` is that of the variables. */
async function listen(
  fastify: FastifyInstance,
  { host, port }: Address,
  prefix: string,
  { tls }: Pick<Config, "tls">,
): Promise<string> {
  const listenTextResolver = () => `${prefix}_PORT is accepting connections`;
  const url = await fastify.listen({ host, port, listenTextResolver }).catch((error) => {
    throw error.syscall === undefined ? error : cannotListen(prefix, { host, port }, error);
  });
  // Fastify does not know that the port speaks TLS.
  return tls === null ? url : url.replace(/^http:/, "https:");
}

async function readCertificate({ tls, gateways }: Config): Promise<Certificate | undefined> {
  if (tls === null) return undefined;
  const [cert, key] = await Promise.all([readFile(tls.certFile), readFile(tls.keyFile)]);
  return {
    cert,
    key,
    clientCa: gateways.clientCaFile === null ? undefined : await readClientCa(gateways.clientCaFile),
  };
}

/** Node would trust the CAs of the system instead of an empty file. */
async function readClientCa(file: string): Promise<Buffer> {
  const variable = "KEYHOLD_GATEWAY_CLIENT_CA_FILE";
  const pem = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw invalidArgument(variable, `${file} cannot be read (${error.code})`);
  });
  try {
    new X509Certificate(pem);
    return pem;
  } catch {
    throw invalidArgument(variable, `${file} contains no certificate in PEM format`);
  }
}
