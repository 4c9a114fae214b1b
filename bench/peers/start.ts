import { join, resolve } from "node:path";
import { type KnownKey, writeKeys } from "../baseline/go/start.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import { run } from "../harness/program.ts";
import { type ServerProcess, startServer } from "../harness/server.ts";
import { isInstalled } from "../harness/tools.ts";

/** Valkey, or Redis, from which it was forked. */
export const VALKEY = isInstalled("valkey-server") ? "valkey-server" : "redis-server";

/** Installs the packages of this folder, which nothing else needs. */
const installPackages = once(() => run(["npm", "ci", "--prefix", import.meta.dirname, "--ignore-scripts"]));

async function startPeer(
  fixture: Fixture,
  program: string,
  environment: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  await installPackages(fixture);
  const command = [process.execPath, resolve(import.meta.dirname, program)];
  return startServer(fixture, { command, environment, portVariable: "PORT", readyPath: "/" });
}

/** Starts a route in front of Valkey, which runs on the core of the load, as PostgreSQL does. */
export async function startValkey(
  fixture: Fixture,
  keys: readonly KnownKey[],
  program = "valkey.ts",
  environment: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  const socket = join(fixture.dir, `valkey-${keys.length}`);
  await startServer(fixture, {
    command: ["sh", "-c", `exec ${VALKEY} --port "$PORT" --unixsocket ${socket} --save ""`],
    environment: {},
    portVariable: "PORT",
    readyPath: null,
    cores: "load",
  });
  return startPeer(fixture, program, { SOCKET: socket, KEYS: await writeKeys(fixture, keys), ...environment });
}

/** Starts a route with better-auth, whose keys it writes to the file `credentials`. `database` is the URL of PostgreSQL, or a file of SQLite. */
export function startBetterAuth(
  fixture: Fixture,
  database: string,
  count: number,
  credentials: string,
): Promise<ServerProcess> {
  return startPeer(fixture, "better-auth.ts", {
    DATABASE_URL: database,
    KEYS: String(count),
    CREDENTIALS: credentials,
  });
}
