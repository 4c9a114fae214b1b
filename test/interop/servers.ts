import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { freePort } from "../support/free-port.ts";
import { runKeyhold, type Serving, serve } from "../support/keyhold.ts";

/** A live server that requires a token, and the environment of its clients. */
export interface Server {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
}

const root = resolve(import.meta.dirname, "../..");
const PROGRAM = resolve(root, "src/cli/keyhold.js");
const AUTHORITY = resolve(root, "test/support/tls/ca.cert.pem");
const CERTIFICATE = resolve(root, "test/support/tls/issued.cert.pem");
const PRIVATE_KEY = resolve(root, "test/support/tls/issued.key.pem");

/**
 * Runs `body` with one server without TLS (HTTP/1.1 and h2c), which signs JWTs with EdDSA, and one with TLS, which signs with ES256, each
 * with its own database.
 */
export async function withServers<T>(body: (plain: Server, tls: Server) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), "keyhold-interop-"));
  await chmod(dir, 0o711);
  const processes: Serving[] = [];
  const plainSettings = { KEYHOLD_SIGNING_ALGORITHM: "EdDSA" };
  const tls = {
    KEYHOLD_SIGNING_ALGORITHM: "ES256",
    KEYHOLD_TLS_CERT_FILE: CERTIFICATE,
    KEYHOLD_TLS_KEY_FILE: PRIVATE_KEY,
  };
  try {
    const plain = await start("h2c", join(dir, "h2c"), plainSettings, processes);
    return await body(plain, await start("TLS", join(dir, "tls"), tls, processes));
  } finally {
    for (const one of processes) one.kill("SIGTERM");
    await Promise.all(processes.map(({ ended }) => ended));
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  }
}

async function start(
  name: string,
  dir: string,
  settings: Readonly<Record<string, string>> & { readonly KEYHOLD_SIGNING_ALGORITHM: string },
  processes: Serving[],
): Promise<Server> {
  await mkdir(dir);
  await chmod(dir, 0o711);
  const pages = { suite: `http://page.localhost:${await freePort()}`, example: `http://localhost:${await freePort()}` };
  const embedding = `http://localhost:${await freePort()}`;
  const environment = {
    KEYHOLD_DATA_DIR: join(dir, "data"),
    KEYHOLD_AUTH: "admin-token",
    KEYHOLD_CORS_ORIGINS: Object.values(pages).join(),
    KEYHOLD_KEY_PAGES_FRAME_ANCESTORS: embedding,
    ...settings,
  };
  const serving = await serve(environment);
  processes.push(serving);
  // Its database ends with it.
  process.once("exit", () => serving.kill("SIGKILL"));
  const { stdout: token, code, stderr } = await runKeyhold(["admin", "token", "create", "--name", name], environment);
  if (code !== 0) throw new Error(`no admin token: ${stderr}`);
  const rotate = join(dir, "rotate-signing-key");
  await writeFile(rotate, rotateScript(environment), { mode: 0o755 });
  const serveFile = join(dir, "serve");
  await writeFile(serveFile, serveScript(dir, settings), { mode: 0o755 });
  const env = {
    KEYHOLD_URL: serving.url,
    KEYHOLD_TOKEN: token.trim(),
    KEYHOLD_ROTATE_SIGNING_KEY: rotate,
    KEYHOLD_SERVE: serveFile,
    /** Allowed for pages: of the suite `browser`, and of an example. */
    KEYHOLD_PAGE_ORIGIN: pages.suite,
    KEYHOLD_EXAMPLE_ORIGIN: pages.example,
    /** May embed the key page. */
    KEYHOLD_EMBEDDING_ORIGIN: embedding,
    /** The algorithm that clients must find in JWTs and in the key set. */
    KEYHOLD_SIGNING_ALGORITHM: settings.KEYHOLD_SIGNING_ALGORITHM,
  };
  return { name, env: "KEYHOLD_TLS_CERT_FILE" in settings ? { ...env, KEYHOLD_CA_FILE: AUTHORITY } : env };
}

/** Returns a script that runs a server without authentication, with its own database. The first line of its log with `url` names it. */
function serveScript(dir: string, settings: Readonly<Record<string, string>>): string {
  const variables = Object.entries({ ...settings, KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "off" });
  const command = ["env", ...variables.map(([name, value]) => `${name}=${value}`), process.execPath, PROGRAM, "serve"];
  return `#!/bin/sh
own=$(mktemp -d ${quoted(`${dir}/serve-XXXXXX`)}) && chmod 711 "$own"
export KEYHOLD_DATA_DIR="$own/data"
exec ${command.map(quoted).join(" ")}
`;
}

/** Returns a script for clients, which have only the URL of the server. */
function rotateScript(environment: Readonly<Record<string, string>>): string {
  const command = [process.execPath, PROGRAM, "signing-keys", "rotate"];
  const settings = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return `#!/bin/sh\nexec env ${[...settings, ...command].map(quoted).join(" ")}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
