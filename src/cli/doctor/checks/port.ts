import { once } from "node:events";
import { createServer } from "node:net";
import { json } from "node:stream/consumers";
import { type Check, error, type Finding, ok } from "../finding.ts";

/** Milliseconds. */
const TIMEOUT = 2_000;

export const checkPort: Check = async ({ config: { host, port, tls } }) => {
  if (port === 0) return [ok("the server takes any free port")];
  const code = await bindFailure(host, port);
  if (code === null) return [ok(`port ${port} is free: no server runs here`)];
  if (code !== "EADDRINUSE") return [cannotListen(host, port, code)];
  const url = `${tls === null ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}/health/alive`;
  if (await isKeyhold(url)) return [ok(`a server answers on port ${port}`)];
  return [error(`another program has port ${port}`, "stop it, or set KEYHOLD_PORT")];
};

function cannotListen(host: string, port: number, code: string): Finding {
  const remedy =
    code === "EADDRNOTAVAIL" ? "set KEYHOLD_HOST to an address of this machine" : "set another KEYHOLD_PORT";
  return error(`${host}:${port} cannot be listened on (${code})`, remedy);
}

/** Why the port cannot be had, or null if it can; it is given back at once. */
async function bindFailure(host: string, port: number): Promise<string | null> {
  const server = createServer().listen({ host, port });
  try {
    await once(server, "listening");
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown";
  } finally {
    server.close();
  }
}

/** Nothing is told to whoever answers, so any certificate will do: it is for another name than this address. */
async function isKeyhold(url: string): Promise<boolean> {
  const get = url.startsWith("https:") ? (await import("node:https")).get : (await import("node:http")).get;
  const request = get(url, { rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(TIMEOUT) });
  try {
    const [response] = await once(request, "response");
    return Object(await json(response)).status === "ok";
  } catch {
    return false;
  }
}
