import { stat } from "node:fs/promises";
import { clusterDirOf } from "../../embedded-postgres/cluster.ts";
import { startEmbeddedPostgres } from "../../embedded-postgres/embedded.ts";
import { findPending, readMigrations } from "../../postgres/migrate.ts";
import { Pool } from "../../postgres/pool.ts";
import type { Config } from "../../server/config/config.ts";
import { explain } from "../failure.ts";
import { type Answering, error, type Finding, ok } from "./finding.ts";

/** Milliseconds: keys are counted. */
const STATEMENT_TIMEOUT = 60_000;

type Opened = Pick<Answering, "database" | "url" | "hasSchema"> & { close(): Promise<void> };

/**
 * Opens the database as a server does, but for its schema, which stays as it is. The embedded one is started for as long as it takes
 * if it does not run, and not made if it is not there.
 */
export async function openDatabase(config: Config): Promise<Opened | Finding> {
  if (config.databaseUrl === null && !(await hasCluster(config)))
    return ok("the embedded database is made at first start");
  const server = await startEmbedded(config).catch((reason) => unreachable(explain(reason)));
  if (server !== null && "level" in server) return server;
  const url = server?.serverUrl ?? config.databaseUrl ?? "";
  const options = { maxConnections: 1, statementTimeout: STATEMENT_TIMEOUT, answerTimeout: STATEMENT_TIMEOUT + 1_000 };
  const database = new Pool({ ...options, url, prepare: false });
  const close = async () => {
    await database.close();
    await server?.stop();
  };
  try {
    await database.run((sql) => sql`SELECT`);
    return { database, url, hasSchema: await hasSchema(database), close };
  } catch (reason) {
    await close();
    return unreachable(explain(reason), server === null ? undefined : EMBEDDED_REMEDY);
  }
}

/** Whether there is an embedded database, running or not. */
export function hasCluster({ databaseUrl, dataDir }: Config): Promise<boolean> {
  return databaseUrl !== null
    ? Promise.resolve(false)
    : stat(clusterDirOf(dataDir)).then(
        () => true,
        () => false,
      );
}

async function startEmbedded({ databaseUrl, dataDir }: Config) {
  return databaseUrl === null ? startEmbeddedPostgres({ dataDir, ifRunning: "attach", log: () => {} }) : null;
}

async function hasSchema(database: Pool): Promise<boolean> {
  const migrations = await readMigrations();
  const pending = await database.run((sql) => findPending(sql, migrations)).catch(() => null);
  return pending !== null && pending.length === 0;
}

const REMEDY = "see that it runs, that KEYHOLD_DATABASE_URL names it, and that the role and its password are right";

/** Its files are there, and the role of the servers came with a later release. */
const EMBEDDED_REMEDY = "start the server once with this release, which makes the role that servers have";

function unreachable(why: string, remedy = REMEDY): Finding {
  return error(why, remedy);
}
