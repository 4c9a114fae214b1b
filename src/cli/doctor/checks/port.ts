import { once } from "node:events";
import { createServer } from "node:net";
import { type Check, error, type Finding, ok } from "../finding.ts";

/** Milliseconds. */
const TIMEOUT = 2_000;

export const checkPort: Check = async ({ config: { host, port, tls } }) => {
  if (port === 0) return [ok("the server takes any free port")];
  const code = await bindFailure(host, port);
  if (code === null) return [ok(`port ${port} is free: no server runs here`)];
  if (code !== "EADDRINUSE") return [cannotListen(host, port, code)];
  const url = `${tls === null ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}/health/alive`;
  // With TLS, whoever answers must not be believed only because the name of the certificate fits.
  if (tls !== null || (await isKeyhold(url))) return [ok(`a server answers on port ${port}`)];
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

async function isKeyhold(url: string): Promise<boolean> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT) })
    .then((response) => response.json())
    .catch(() => null);
  return Object(answer).status === "ok";
}
