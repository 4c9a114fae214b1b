import { Writable } from "node:stream";
import { pino } from "pino";
import { toConfig } from "../../src/server/config/config.ts";
import { startService } from "../../src/server/start.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";

/** Random once for all tests: what is made under it must not be looked for in logs by a fixed text. */
export const ROOT_SECRET = "test-root-secret-0123456789-abcdefghijklmnop";

export interface TestServer {
  /** Such as `http://127.0.0.1:34567`, for HTTP/1.1, h2c and gRPC alike. */
  readonly url: string;
  /** `127.0.0.1:34567`, as gRPC clients take it. */
  readonly address: string;
  /** Of its database, as it connects itself: it may not change the schema. */
  readonly databaseUrl: string;
  /** As the owner of the schema. */
  readonly ownerUrl: string;
  /** Everything the server has logged, one JSON object a line. */
  log(): string;
  /** Stops the server and starts another on the same database, with changes to its environment. */
  restart(environment?: Record<string, string>): Promise<void>;
  /** Stops the server and removes the database. */
  close(): Promise<void>;
}

/** The real service in this process: a database of its own, a port of its own, nobody needs a credential unless asked for. */
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
      // So that the same tests run both ways.
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

/** The database of another, who removes it. */
function lent(url: string): TestDatabase {
  return { url, ownerUrl: url, drop: async () => {} };
}
