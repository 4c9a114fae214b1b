import type { RequestListener } from "node:http";
import type { Certificate } from "./entry.ts";
import type { Front } from "./front.ts";
import { defaultLimits, type PortLimits } from "./limits.ts";
import { PortServer } from "./server.ts";

export interface PortOptions {
  /** With it the port speaks TLS alone; without it, plain text alone. Both protocols are spoken either way. */
  readonly certificate?: Certificate;
  /** By default `defaultLimits`. */
  readonly limits?: PortLimits;
  readonly front?: Front;
}

export interface Port {
  /**
   * For Fastify's option of the same name: `Fastify({ serverFactory: port.serverFactory })`. `listen()` and `close()` of Fastify
   * do the rest; `close()` is over within `closeTimeout`. An HTTP/2 request reaches Fastify as the objects of Node's
   * compatibility API, with `httpVersion` "2.0". Throws Node's error if the certificate or a limit cannot be used.
   */
  readonly serverFactory: (listener: RequestListener) => PortServer;
  /** Takes a new certificate without a restart; connections that exist keep theirs. Throws if the port was made without one. */
  setCertificate(certificate: Certificate): void;
}

/** One port for HTTP/1.1 and HTTP/2: by the client's first bytes without TLS, by ALPN with it. */
export function createPort(options: PortOptions = {}): Port {
  const { limits = defaultLimits, front } = options;
  let { certificate } = options;
  const servers = new Set<PortServer>();
  return {
    serverFactory(listener) {
      const server = new PortServer(limits, certificate, front, listener);
      servers.add(server);
      return server;
    },
    setCertificate(next) {
      if (certificate === undefined) throw new Error("the port was made without TLS");
      for (const server of servers) server.setCertificate(next);
      certificate = next;
    },
  };
}
