import type { RequestListener } from "node:http";
import type { Socket } from "node:net";
import type { Certificate } from "./entry.ts";
import { defaultLimits, type PortLimits } from "./limits.ts";
import type { RequestInterceptor } from "./request-interceptor.ts";
import { PortServer } from "./server.ts";

export interface PortOptions {
  /** With it the port speaks TLS alone; without it, plain text alone. Both protocols are spoken either way. */
  readonly certificate?: Certificate;
  /** By default `defaultLimits`. */
  readonly limits?: PortLimits;
  readonly interceptor?: RequestInterceptor;
}

export interface Port {
  /**
   * For Fastify's option of the same name: `Fastify({ serverFactory: port.serverFactory })`. `listen()` and `close()` of Fastify
   * do the rest; `close()` is over within `closeTimeout`. An HTTP/2 request reaches Fastify as the objects of Node's
   * compatibility API, with `httpVersion` "2.0". Throws Node's error if the certificate or a limit cannot be used.
   */
  readonly serverFactory: (listener: RequestListener) => PortServer;
  /** Calls `then` when the complete HTTP/1.1 requests of a connection have been answered; at once if there are none. */
  afterAnswers(socket: Socket, then: () => void): void;
}

/** One port for HTTP/1.1 and HTTP/2: by the client's first bytes without TLS, by ALPN with it. */
export function createPort(options: PortOptions = {}): Port {
  const { limits = defaultLimits, interceptor, certificate } = options;
  const servers = new Set<PortServer>();
  return {
    serverFactory(listener) {
      const server = new PortServer(limits, certificate, interceptor, listener);
      servers.add(server);
      return server;
    },
    afterAnswers(socket, then) {
      const last = [...servers].map((server) => server.lastResponse(socket)).find((response) => response !== undefined);
      if (last === undefined || last.writableFinished) then();
      // Before Node's own listener, which ends the socket of a client that has closed its sending side.
      else last.prependOnceListener("finish", then);
    },
  };
}
