import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type Address, listenFailure } from "../../../server/listening.ts";
import { type Check, error, type Finding, ok } from "../finding.ts";

/** Milliseconds. */
const TIMEOUT = 2_000;

/** An address that the server listens on, and the variable that says so. */
interface Place extends Address {
  readonly variable: string;
  /** Whether what has the port is a server of ours. */
  readonly isOurs: () => Promise<boolean>;
}

export const checkPort: Check = async ({ config: { host, port, tls, metrics } }) => {
  const scheme = tls === null ? "http" : "https";
  const places: Place[] = [
    { host, port, variable: "KEYHOLD_PORT", isOurs: () => isKeyhold(`${scheme}://${authority(host, port)}`) },
    ...(metrics === null ? [] : [placeOfMetrics(metrics)]),
  ];
  return Promise.all(places.map(examine));
};

function placeOfMetrics({ host, port }: Address): Place {
  return { host, port, variable: "KEYHOLD_METRICS_PORT", isOurs: () => hasMetrics(`http://${authority(host, port)}`) };
}

/** RFC 3986 §3.2. */
function authority(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

async function examine({ host, port, variable, isOurs }: Place): Promise<Finding> {
  if (port === 0) return ok(`${variable}: the server takes any free port`);
  const failure = await listenFailure({ host, port });
  if (failure === null) return ok(`port ${port} is free: no server runs here`);
  if (failure.code !== "EADDRINUSE") return cannotListen(host, port, variable, failure.code ?? failure.message);
  if (await isOurs()) return ok(`a server answers on port ${port}`);
  return error(`another program has port ${port}`, `stop it, or set ${variable}`);
}

function cannotListen(host: string, port: number, variable: string, code: string): Finding {
  const address = variable.replace("PORT", "HOST");
  const remedy = code === "EADDRNOTAVAIL" ? `set ${address} to an address of this machine` : `set another ${variable}`;
  return error(`${host}:${port} cannot be listened on (${code})`, remedy);
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

/** Nothing is told to whoever answers, so any certificate will do: it is for another name than this address. */
async function get(url: string): Promise<string> {
  const client = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  const request = client.get(url, { rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(TIMEOUT) });
  const [response] = await once(request, "response");
  return text(response);
}
