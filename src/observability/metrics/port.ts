import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { isAddressHost, isListedHost, isLoopbackHost } from "../../lib/host-names.ts";

export type Scrape = () => Promise<string>;

export type MetricsPort = Awaited<ReturnType<typeof openMetricsPort>>;

/** The text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Listens for scrapes on a separate port, so that the network decides who may read them. A Host that is a name not in `allowedHosts` is
 * rejected (DNS rebinding). `onFault` receives the error of a failed scrape. Rejects with Node's error if it cannot listen.
 */
export async function openMetricsPort(
  { host, port }: { readonly host: string; readonly port: number },
  allowedHosts: readonly string[],
  onFault: (error: unknown) => void,
) {
  let scrape: Scrape | undefined;
  const server = createServer(async ({ method, url = "", headers: { host = "" } }, response) => {
    const reject = (status: number, text: string) => response.writeHead(status).end(`${text}\n`);
    const isAllowed = isLoopbackHost(host) || isAddressHost(host) || isListedHost(host, allowedHosts);
    if (!isAllowed)
      return reject(
        403,
        "the Host header must be a loopback name or an IP address, or be listed in KEYHOLD_ALLOWED_HOSTS",
      );
    if (url.split("?")[0] !== "/metrics") return reject(404, "metrics are at /metrics");
    if (method !== "GET" && method !== "HEAD") return reject(405, "/metrics allows GET and HEAD only");
    if (scrape === undefined) return reject(503, "the server is starting");
    try {
      const text = await scrape();
      return response.writeHead(200, { "content-type": CONTENT_TYPE }).end(text);
    } catch (error) {
      onFault(error);
      return reject(500, "the metrics could not be collected");
    }
  });
  await once(server.listen({ host, port }), "listening");
  return {
    /** Such as `http://127.0.0.1:4421/metrics`. */
    url: urlOf(server.address() as AddressInfo),
    /** Sets the source of scrapes. Until then they are answered 503. */
    serve: (source: Scrape): void => {
      scrape = source;
    },
    close: async (): Promise<void> => {
      server.close().closeAllConnections();
      await once(server, "close");
    },
  };
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}/metrics`;
}
