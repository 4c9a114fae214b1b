import { findPending, readMigrations } from "../../../postgres/migrate.ts";
import { type Check, type DatabaseContext, error, type Finding, ok, warning } from "../finding.ts";

export const checkSchema: Check<DatabaseContext> = async ({ config, database }) => {
  const migrations = await readMigrations();
  const pending = await database.run((sql) => findPending(sql, migrations)).catch(notReadable);
  if ("level" in pending) return [pending];
  if (pending.length === 0) return [ok("the schema is up to date")];
  const message = `the schema lacks ${pending.join(", ")}`;
  // Any command or server that opens the embedded database migrates it.
  if (config.databaseUrl === null) return [warning(message, "start the server, which applies it")];
  return [error(message, "run keyhold migrate as the owner of the schema")];
};

function notReadable(reason: { code?: string }): Finding {
  if (reason.code !== "42501") throw reason;
  return error("the servers' role may not read the schema", "run keyhold migrate --grant-to <role> as the owner");
}
