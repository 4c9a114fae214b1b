import { findPending, readMigrations } from "../../../postgres/migrate.ts";
import { type Answering, type Check, error, type Finding, ok, warning } from "../finding.ts";

export const checkSchema: Check<Answering> = async ({ config, database }) => {
  const migrations = await readMigrations();
  const pending = await database.run((sql) => findPending(sql, migrations)).catch(notReadable);
  if ("level" in pending) return [pending];
  if (pending.length === 0) return [ok("the schema is up to date")];
  const message = `the schema lacks ${pending.join(", ")}`;
  // The embedded database is brought up to date by whatever opens it.
  if (config.databaseUrl === null) return [warning(message, "start the server, which applies it")];
  return [error(message, "run keyhold migrate as the owner of the schema")];
};

function notReadable(reason: { code?: string }): Finding {
  if (reason.code !== "42501") throw reason;
  return error("the role of the servers may not read the schema", "run keyhold migrate --grant-to <role> as the owner");
}
