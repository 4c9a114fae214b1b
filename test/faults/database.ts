import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sql } from "postgres";
import { database, owner, serverRole } from "../../src/embedded-postgres/cluster.ts";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { bringUpToDate } from "../../src/postgres/schema.ts";
import { freePort } from "../support/free-port.ts";
import { superuserOf } from "../support/standby.ts";

/** The PostgreSQL of a run, as durable as a real one, and started again whenever it ends. */
export interface Database {
  readonly port: number;
  /** Of the postmaster that runs, or ran last. */
  readonly pid: number;
  /** The URL for a server that comes by this port: it may not change the schema. */
  url(port: number): string;
  /** A superuser's connection by the Unix socket, which no fault of a road touches. */
  readonly admin: Sql;
  stop(): Promise<void>;
}

const HOST_RULES = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

/** Makes the schema as the owner, and gives the role of the servers its rights. */
export type MakeSchema = (ownerUrl: string, serverRole: string) => Promise<unknown>;

/** Starts it in a folder below this one. */
export async function startDatabase(dir: string, makeSchema: MakeSchema = bringUpToDate): Promise<Database> {
  // Of all below this folder PostgreSQL, as a user of its own, sees its data folder alone.
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
  const urlOf = (role: string, roadPort: number) => `postgres://${role}:${password}@127.0.0.1:${roadPort}/${database}`;
  await makeSchema(urlOf(owner, port), serverRole);
  return {
    port,
    get pid() {
      return embedded.pid;
    },
    url: (roadPort) => urlOf(serverRole, roadPort),
    admin,
    stop: async () => {
      await admin.end({ timeout: 1 });
      await embedded.stop();
      lines.end();
    },
  };
}
