import { once } from "node:events";
import { stat, statfs } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { parseJson } from "../../../lib/json.ts";
import { type Address, listenFailure } from "../../../server/listening.ts";
import { type Check, error, type Finding, ok, warning } from "../finding.ts";

export const checkDataFolder: Check = async ({ config: { databaseUrl, dataDir } }) => {
  if (databaseUrl !== null) return [];
  const found = await stat(dataDir).catch(() => null);
  if (found === null) return [ok(`${dataDir} will be created at first start`)];
  return [evaluateMode(dataDir, found.mode), evaluateSpace(await statfs(dataDir))];
};

/** Others may need to traverse it to reach PostgreSQL's own folder, which is private. */
function evaluateMode(dataDir: string, mode: number): Finding {
  if ((mode & 0o066) === 0) return ok(`other users cannot read or write ${dataDir}`);
  return warning(`other users can read or write ${dataDir}`, `chmod go-rw ${dataDir}`);
}

/** PostgreSQL stops when the disk is full. */
export function evaluateSpace({ bavail, bsize }: { readonly bavail: number; readonly bsize: number }): Finding {
  const free = (bavail * bsize) / 1024 ** 3;
  const message = `${free.toFixed(1)} GiB free in the data directory`;
  if (free >= 1) return ok(message);
  return free < 0.1 ? error(message, "free disk space now") : warning(message, "free disk space");
}

/** Timeout in milliseconds. */
const TIMEOUT = 2_000;

export const checkPort: Check = async ({ config: { host, port, tls, metrics } }) => {
  const scheme = tls === null ? "http" : "https";
  const checks = [check({ host, port }, "KEYHOLD_PORT", (at) => isKeyhold(`${scheme}://${at}`))];
  if (metrics !== null) checks.push(check(metrics, "KEYHOLD_METRICS_PORT", (at) => hasMetrics(`http://${at}`)));
  return Promise.all(checks);
};

/** Checks an address that the server listens on. `isOurs` returns whether a Keyhold server has the port. */
async function check(
  { host, port }: Address,
  variable: string,
  isOurs: (authority: string) => Promise<boolean>,
): Promise<Finding> {
  if (port === 0) return ok(`${variable}: the server will use any free port`);
  const failure = await listenFailure({ host, port });
  if (failure === null) return ok(`port ${port} is free: no server is running here`);
  const { code = failure.message } = failure;
  if (code !== "EADDRINUSE") {
    const address = variable.replace("PORT", "HOST");
    const remedy = code === "EADDRNOTAVAIL" ? `set ${address} to an address of this machine` : `change ${variable}`;
    return error(`cannot listen on ${host}:${port} (${code})`, remedy);
  }
  // Host and port (RFC 3986 §3.2).
  if (await isOurs(`${host.includes(":") ? `[${host}]` : host}:${port}`))
    return ok(`a server is listening on port ${port}`);
  return error(`another program is using port ${port}`, `stop the other program, or change ${variable}`);
}

async function isKeyhold(origin: string): Promise<boolean> {
  const body = await get(`${origin}/health/alive`).catch(() => "");
  return Object(parseJson(body)).status === "ok";
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
