import { readRights } from "../../../postgres/migrations/rights.ts";
import { type Check, type DatabaseContext, error, type Finding, ok, warning } from "../finding.ts";

export const checkSchema: Check<DatabaseContext> = async ({ config, pending }) => {
  if (pending instanceof Error) return [notReadable(pending)];
  if (pending.length === 0) return [ok("the schema is up to date")];
  const message = `the schema lacks ${pending.join(", ")}`;
  // Any command or server that opens the embedded database migrates it.
  if (config.databaseUrl === null) return [warning(message, "start the server to apply the pending migrations")];
  return [error(message, "as schema owner: keyhold migrate")];
};

function notReadable(reason: Error): Finding {
  if (!("code" in reason && reason.code === "42501")) throw reason;
  return error("the servers' role cannot read the schema", "as schema owner: keyhold migrate --grant-to <role>");
}

const SPLIT =
  "create a role for the servers (CREATE ROLE … LOGIN), set it in KEYHOLD_DATABASE_URL, and run `keyhold migrate` with the owner's URL in KEYHOLD_DATABASE_MIGRATE_URL";

export const checkRights: Check<DatabaseContext> = async ({ database, hasSchema }) => {
  if (!hasSchema) return [];
  const { role, isSuperuser, isOwner, mayCreate, missing, needless } = await database.run(readRights);
  const found: Finding[] = [];
  if (missing.length > 0)
    found.push(
      error(`role ${role} lacks ${missing.join(", ")}`, `as schema owner: keyhold migrate --grant-to ${role}`),
    );
  if (isSuperuser) found.push(warning(`role ${role} is a superuser`, SPLIT));
  else if (isOwner) found.push(warning(`role ${role} owns the schema and can change it`, SPLIT));
  else if (mayCreate)
    found.push(warning(`role ${role} can create tables`, `REVOKE CREATE ON SCHEMA public FROM PUBLIC, ${role}`));
  if (needless.length > 0)
    found.push(warning(`role ${role} has unneeded privileges: ${needless.join(", ")}`, `REVOKE them from ${role}`));
  return found.length > 0 ? found : [ok(`role ${role} has exactly the privileges it needs`)];
};
