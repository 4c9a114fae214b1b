import { readCondition } from "../../../postgres/condition.ts";
import { type Answering, type Check, error, ok } from "../finding.ts";

/** The oldest release that its makers still look after (postgresql.org/support/versioning). The tests run on 18. */
const OLDEST = 15;

export const checkVersion: Check<Answering> = async ({ database }) => {
  const { versionNumber, version, isReadOnly } = await readCondition(database);
  if (isReadOnly) return [error("the database takes no writes", "connect to the primary server, read-write")];
  if (versionNumber >= OLDEST * 10_000) return [ok(`PostgreSQL ${version}`)];
  return [error(`PostgreSQL ${version} is not supported`, `upgrade to ${OLDEST} or later`)];
};
