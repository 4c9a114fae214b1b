import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sql } from "postgres";
import { database, owner, serverRole } from "../../src/embedded-postgres/cluster.ts";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { bringUpToDate } from "../../src/postgres/migrations/schema.ts";
import { freePort } from "../support/free-port.ts";
import { superuserOf } from "../support/standby.ts";

/** The PostgreSQL of a run, with durable writes, restarted whenever it exits. */
export interface Database {
  readonly port: number;
  /** Process id of the current or latest postmaster. */
  readonly pid: number;
  /** Returns the URL for a server that connects to this port, with the restricted role. */
  url(port: number): string;
  /** A superuser's connection over the Unix socket, which bypasses the TCP proxies. */
  readonly admin: Sql;
  stop(): Promise<void>;
}

const HOST_RULES = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

/** Creates the schema as the owner and grants the servers' role its privileges. */
export type MakeSchema = (ownerUrl: string, serverRole: string) => Promise<unknown>;

/** Starts PostgreSQL in a folder below this one. */
export async function startDatabase(dir: string, makeSchema: MakeSchema = bringUpToDate): Promise<Database> {
  // PostgreSQL may run as another user, which can access only its data directory.
  const dataDir = join(dir, "database");
  await mkdir(dataDir);
  const hbaFile = join(dataDir, "pg_hba.conf");
  await writeFile(hbaFile, HOST_RULES);
  const port = await freePort();
  const settings = { listen_addresses: "127.0.0.1", port: String(port), hba_file: hbaFile, max_connections: "200" };
  const lines = createWriteStream(join(dir, "postgres.log"));
  const log = (_: string, line: string) => void lines.write(`${new Date().toISOString()} ${line}\n`);
  const embedded = await startEmbeddedPostgres({ dataDir, log, settings });
  const admin = superuserOf({ name: decodeURIComponent(new URL(embedded.url).hostname), port });
  const password = randomBytes(16).toString("hex");
  await admin.unsafe(`ALTER ROLE ${owner} PASSWORD '${password}'; ALTER ROLE ${serverRole} PASSWORD '${password}'`);
  const urlOf = (role: string, proxyPort: number) =>
    `postgres://${role}:${password}@127.0.0.1:${proxyPort}/${database}`;
  await makeSchema(urlOf(owner, port), serverRole);
  return {
    port,
    get pid() {
      return embedded.pid;
    },
    url: (proxyPort) => urlOf(serverRole, proxyPort),
    admin,
    stop: async () => {
      await admin.end({ timeout: 1 });
      await embedded.stop();
      lines.end();
    },
  };
}
