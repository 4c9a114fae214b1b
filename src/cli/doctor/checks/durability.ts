import { readServerSettings } from "../../../postgres/server-settings.ts";
import { type Answering, type Check, error, ok } from "../finding.ts";

/** A database that forgets what it has committed forgets revocations too (docs/consistency.md). */
export const checkDurability: Check<Answering> = async ({ database }) => {
  const { fsync, fullPageWrites, synchronousCommit } = await readServerSettings(database);
  const settings = { fsync, full_page_writes: fullPageWrites, synchronous_commit: synchronousCommit };
  const off = Object.entries(settings).flatMap(([name, isOn]) => (isOn ? [] : [name]));
  if (off.length === 0) return [ok("what is committed survives a crash")];
  return off.map((name) => error(`${name} is off: a crash may undo a revocation`, `set ${name} = on in PostgreSQL`));
};
