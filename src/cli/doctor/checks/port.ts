import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type Address, listenFailure } from "../../../server/listening.ts";
import { type Check, error, type Finding, ok } from "../finding.ts";

/** Timeout in milliseconds. */
const TIMEOUT = 2_000;

/** An address that the server listens on, and its variable. */
interface Listener extends Address {
  readonly variable: string;
  /** Returns whether a Keyhold server has the port. */
  readonly isOurs: () => Promise<boolean>;
}

export const checkPort: Check = async ({ config: { host, port, tls, metrics } }) => {
  const scheme = tls === null ? "http" : "https";
  const listeners: Listener[] = [
    { host, port, variable: "KEYHOLD_PORT", isOurs: () => isKeyhold(`${scheme}://${authority(host, port)}`) },
    ...(metrics === null ? [] : [metricsListener(metrics)]),
  ];
  return Promise.all(listeners.map(check));
};

function metricsListener({ host, port }: Address): Listener {
  return { host, port, variable: "KEYHOLD_METRICS_PORT", isOurs: () => hasMetrics(`http://${authority(host, port)}`) };
}

/** Formats host and port (RFC 3986 §3.2). */
function authority(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

async function check({ host, port, variable, isOurs }: Listener): Promise<Finding> {
  if (port === 0) return ok(`${variable}: the server will use any free port`);
  const failure = await listenFailure({ host, port });
  if (failure === null) return ok(`port ${port} is free: no server is running here`);
  if (failure.code !== "EADDRINUSE") return cannotListen(host, port, variable, failure.code ?? failure.message);
  if (await isOurs()) return ok(`a server is listening on port ${port}`);
  return error(`another program is using port ${port}`, `stop it, or change ${variable}`);
}

function cannotListen(host: string, port: number, variable: string, code: string): Finding {
  const address = variable.replace("PORT", "HOST");
  const remedy = code === "EADDRNOTAVAIL" ? `set ${address} to an address of this machine` : `change ${variable}`;
  return error(`cannot listen on ${host}:${port} (${code})`, remedy);
}

async function isKeyhold(origin: string): Promise<boolean> {
  try {
    return Object(JSON.parse(await get(`${origin}/health/alive`))).status === "ok";
  } catch {
    return false;
  }
}

async function hasMetrics(origin: string): Promise<boolean> {
  return (await get(`${origin}/metrics`).catch(() => "")).includes("keyhold_build_info");
}

/** Sends a GET without secrets. Certificates are not checked: they are not issued for this address. */
async function get(url: string): Promise<string> {
  const client = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  const request = client.get(url, { rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(TIMEOUT) });
  const [response] = await once(request, "response");
  return text(response);
}
