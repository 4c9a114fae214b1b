import { readServerSettings, type ServerSettings } from "../../../postgres/server-settings.ts";
import { type Check, type DatabaseContext, error, type Finding, ok } from "../finding.ts";

/** The oldest supported release (postgresql.org/support/versioning). The tests run on 18. */
const OLDEST = 15;

export const checkVersion: Check<DatabaseContext> = async ({ database }) => {
  const { versionNumber, version, isReadOnly } = await readServerSettings(database);
  if (isReadOnly) return [error("the database is read-only", "connect to the primary")];
  return [evaluateVersion({ versionNumber, version })];
};

export function evaluateVersion({
  versionNumber,
  version,
}: Pick<ServerSettings, "versionNumber" | "version">): Finding {
  if (versionNumber >= OLDEST * 10_000) return ok(`PostgreSQL ${version}`);
  return error(`PostgreSQL ${version} is not supported`, `upgrade to ${OLDEST} or later`);
}
