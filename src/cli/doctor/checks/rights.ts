import { readRights } from "../../../postgres/rights.ts";
import { type Answering, type Check, error, type Finding, ok, warning } from "../finding.ts";

const SPLIT =
  "make a role for the servers (CREATE ROLE … LOGIN), put it into KEYHOLD_DATABASE_URL, and run keyhold migrate with the owner's URL in KEYHOLD_DATABASE_MIGRATE_URL";

/** The role of the servers: all that it needs, and no more. */
export const checkRights: Check<Answering> = async ({ database, hasSchema }) => {
  if (!hasSchema) return [];
  const { role, isSuperuser, isOwner, mayCreate, missing, needless } = await database.run(readRights);
  const found: Finding[] = [];
  if (missing.length > 0)
    found.push(
      error(`role ${role} lacks ${missing.join(", ")}`, `run keyhold migrate --grant-to ${role} as the owner`),
    );
  if (isSuperuser) found.push(warning(`role ${role} is a superuser`, SPLIT));
  else if (isOwner) found.push(warning(`role ${role} owns the schema, and so may change it`, SPLIT));
  else if (mayCreate)
    found.push(warning(`role ${role} may make tables`, `REVOKE CREATE ON SCHEMA public FROM PUBLIC, ${role}`));
  if (needless.length > 0)
    found.push(warning(`role ${role} has ${needless.join(", ")} without need`, `REVOKE it from ${role}`));
  return found.length > 0 ? found : [ok(`role ${role} may do what servers need, and no more`)];
};
