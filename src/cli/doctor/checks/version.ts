import { readServerSettings, type ServerSettings } from "../../../postgres/server-settings.ts";
import { type Answering, type Check, error, type Finding, ok } from "../finding.ts";

/** The oldest release that its makers still look after (postgresql.org/support/versioning). The tests run on 18. */
const OLDEST = 15;

export const checkVersion: Check<Answering> = async ({ database }) => {
  const { versionNumber, version, isReadOnly } = await readServerSettings(database);
  if (isReadOnly) return [error("the database takes no writes", "connect to the primary server, read-write")];
  return [judgeVersion({ versionNumber, version })];
};

export function judgeVersion({ versionNumber, version }: Pick<ServerSettings, "versionNumber" | "version">): Finding {
  if (versionNumber >= OLDEST * 10_000) return ok(`PostgreSQL ${version}`);
  return error(`PostgreSQL ${version} is not supported`, `upgrade to ${OLDEST} or later`);
}
