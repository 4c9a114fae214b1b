import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { isAddressHost, isListedHost, isLoopbackHost } from "../../lib/host-names.ts";

/** The text of a scrape. */
export type Scrape = () => Promise<string>;

export interface MetricsPort {
  /** Such as `http://127.0.0.1:4421/metrics`. */
  readonly url: string;
  /** What is answered from now on; before, scrapes are told to come again. */
  serve(scrape: Scrape): void;
  close(): Promise<void>;
}

/** The text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Listens for scrapes, on a port of its own: the network decides who may read them. A request by a name that is not in `allowedHosts`
 * is refused, as a web page may be behind it (DNS rebinding). `onFault` is called for scrapes that failed. Rejects with the error of
 * Node when it cannot listen there.
 */
export async function openMetricsPort(
  { host, port }: { readonly host: string; readonly port: number },
  allowedHosts: readonly string[],
  onFault: (error: unknown) => void,
): Promise<MetricsPort> {
  let scrape: Scrape | undefined;
  const server = createServer(answer(() => scrape, allowedHosts, onFault));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, resolve);
  });
  return {
    url: urlOf(server.address() as AddressInfo),
    serve: (given) => {
      scrape = given;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(
  scrapeNow: () => Scrape | undefined,
  allowedHosts: readonly string[],
  onFault: (error: unknown) => void,
): RequestListener {
  return async ({ method, url = "", headers: { host = "" } }, response) => {
    const refuse = (status: number, text: string) => response.writeHead(status).end(`${text}\n`);
    const isAllowed = isLoopbackHost(host) || isAddressHost(host) || isListedHost(host, allowedHosts);
    if (!isAllowed) return refuse(403, "the Host must be a loopback name, an IP address, or in KEYHOLD_ALLOWED_HOSTS");
    if (url.split("?")[0] !== "/metrics") return refuse(404, "metrics are at /metrics");
    if (method !== "GET" && method !== "HEAD") return refuse(405, "metrics are only to be read");
    const scrape = scrapeNow();
    if (scrape === undefined) return refuse(503, "the server is starting");
    try {
      const text = await scrape();
      return response.writeHead(200, { "content-type": CONTENT_TYPE }).end(text);
    } catch (error) {
      onFault(error);
      return refuse(500, "the metrics could not be read");
    }
  };
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}/metrics`;
}
