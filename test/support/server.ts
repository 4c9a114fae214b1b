import { Writable } from "node:stream";
import { pino } from "pino";
import { toConfig } from "../../src/server/config/config.ts";
import { startService } from "../../src/server/start.ts";
import { WITHOUT_OWN_LIMITS } from "./own-limits.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";

/** Random, so that searches of logs for it have no false positives. */
export const ROOT_SECRET = "test-root-secret-0123456789-abcdefghijklmnop";

export interface TestServer {
  /** URL for HTTP/1.1, h2c and gRPC, such as `http://127.0.0.1:34567`. */
  readonly url: string;
  /** The same of the port for gateways; throws if they have none of their own. */
  readonly gatewayUrl: string;
  /** Address for gRPC clients, such as `127.0.0.1:34567`. */
  readonly address: string;
  /** URL of its database with the servers' role, which may not change the schema. */
  readonly databaseUrl: string;
  /** URL of its database as the owner of the schema. */
  readonly ownerUrl: string;
  /** The log of the server, one JSON object per line. */
  log(): string;
  /** Restarts the server on the same database, with changes to its environment. */
  restart(environment?: Record<string, string>): Promise<void>;
  /** Stops the server and removes the database. */
  close(): Promise<void>;
}

/** Starts the real service in this process, with its own database and port, by default without authentication. */
export async function startTestServer(environment: Record<string, string> = {}): Promise<TestServer> {
  const database = environment.KEYHOLD_DATABASE_URL
    ? lent(environment.KEYHOLD_DATABASE_URL)
    : await createTestDatabase();
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const start = (more: Record<string, string>) => {
    const config = toConfig({
      KEYHOLD_PORT: "0",
      KEYHOLD_METRICS_PORT: "off",
      KEYHOLD_DATABASE_URL: database.url,
      KEYHOLD_ROOT_SECRET: ROOT_SECRET,
      KEYHOLD_CACHE_SIZE: "16",
      ...WITHOUT_OWN_LIMITS,
      // Tests of other things than leases must not lose theirs on a machine that is slow or busy.
      KEYHOLD_LEASE_TTL: "15s",
      // The same tests also run without the fast path.
      KEYHOLD_FAST_PATH: process.env.KEYHOLD_FAST_PATH ?? "on",
      ...environment,
      ...more,
    });
    return startService(config, pino({ level: "trace" }, stream));
  };
  let service = await start({});
  return {
    get url() {
      return service.url;
    },
    get gatewayUrl() {
      if (service.gatewayUrl === undefined) throw new Error("gateways have no port of their own");
      return service.gatewayUrl;
    },
    get address() {
      return new URL(service.url).host;
    },
    databaseUrl: database.url,
    ownerUrl: database.ownerUrl,
    log: () => lines.join(""),
    restart: async (more = {}) => {
      await service.close();
      service = await start(more);
    },
    close: async () => {
      await service.close();
      await database.drop();
    },
  };
}

/** A database that its creator removes. */
function lent(url: string): TestDatabase {
  return { url, ownerUrl: url, drop: async () => {} };
}
