import { readServerSettings } from "../../../postgres/server-settings.ts";
import { type Check, type DatabaseContext, error, ok } from "../finding.ts";

/** Checks that commits are durable: a database that loses commits loses revocations (docs/consistency.md). */
export const checkDurability: Check<DatabaseContext> = async ({ database }) => {
  const { fsync, fullPageWrites, synchronousCommit } = await readServerSettings(database);
  const settings = { fsync, full_page_writes: fullPageWrites, synchronous_commit: synchronousCommit };
  const off = Object.entries(settings).flatMap(([name, isOn]) => (isOn ? [] : [name]));
  if (off.length === 0) return [ok("committed data survives a crash")];
  return off.map((name) => error(`${name} is off: a crash may lose a revocation`, `set ${name} = on in PostgreSQL`));
};
