import { readServerSettings } from "../../../postgres/server-settings.ts";
import { type Check, type DatabaseContext, error, ok, warning } from "../finding.ts";

/** Milliseconds. Leases and revocations do not depend on wall clocks; expiry and grace periods do (docs/consistency.md). */
const WORTH_A_WARNING = 1_000;
const AN_ERROR = 60_000;

const REMEDY = "synchronize the clocks of both machines (NTP): each server evaluates expiry by its own clock";

export const checkClock: Check<DatabaseContext> = async ({ database, clock }) => {
  const before = clock.now();
  const { time } = await readServerSettings(database);
  const after = clock.now();
  // The database answered at some time in between.
  const difference = Math.max(0, before - time, time - after);
  const message = `the clocks of this machine and the database differ by ${(difference / 1000).toFixed(1)} s`;
  if (difference >= AN_ERROR) return [error(message, REMEDY)];
  return [difference >= WORTH_A_WARNING ? warning(message, REMEDY) : ok(message)];
};
