import { Pool } from "../../postgres/connection/pool.ts";
import { findPending, readMigrations } from "../../postgres/migrations/migrate.ts";
import type { Config } from "../../server/config/config.ts";
import { hasEmbeddedFiles, openDatabaseServer } from "../../server/database-server.ts";
import { explain } from "../failure.ts";
import { error, ok } from "./finding.ts";

/** Milliseconds. Checks count all keys. */
const STATEMENT_TIMEOUT = 60_000;

/** Opens the database as a server does, without changing its schema. An embedded database that is not running is started meanwhile. */
export async function openDatabase(config: Config) {
  const isEmbedded = config.databaseUrl === null;
  if (isEmbedded && !hasEmbeddedFiles(config.dataDir))
    return ok("the embedded database will be created at first start");
  let server: Awaited<ReturnType<typeof openDatabaseServer>>;
  try {
    server = await openDatabaseServer(config, { ifRunning: "attach", log: () => {} });
  } catch (reason) {
    return error(explain(reason), REMEDY);
  }
  const options = { maxConnections: 1, statementTimeout: STATEMENT_TIMEOUT, answerTimeout: STATEMENT_TIMEOUT + 1_000 };
  const database = new Pool({ ...options, url: server.url, prepare: false });
  const close = async () => {
    await database.close();
    await server.stop();
  };
  try {
    await database.run((sql) => sql`SELECT`);
    const migrations = await readMigrations();
    // The migrations that the schema lacks, or why the role cannot read them.
    const pending = await database.run((sql) => findPending(sql, migrations)).catch((reason: Error) => reason);
    return { database, url: server.url, pending, hasSchema: Array.isArray(pending) && pending.length === 0, close };
  } catch (reason) {
    await close();
    return error(explain(reason), isEmbedded ? EMBEDDED_REMEDY : REMEDY);
  }
}

const REMEDY =
  "check that the database is running, that KEYHOLD_DATABASE_URL points to it, and that the role and password are correct";

/** A database of an earlier release lacks the servers' role. */
const EMBEDDED_REMEDY = "start a server of this release once to create the servers' role";
