import { readServerSettings } from "../../../postgres/server-settings.ts";
import { type Answering, type Check, error, ok, warning } from "../finding.ts";

/** Milliseconds. Leases and revocations depend on no wall clock; expiry and grace periods do (docs/consistency.md). */
const WORTH_A_WARNING = 1_000;
const AN_ERROR = 60_000;

const REMEDY = "synchronize the clocks of both machines, such as by NTP: expiry is judged by the clock of each server";

export const checkClock: Check<Answering> = async ({ database, clock }) => {
  const before = clock.now();
  const { time } = await readServerSettings(database);
  const after = clock.now();
  // The answer was made at some time in between.
  const difference = Math.max(0, before - time, time - after);
  const message = `our clock and the database's differ by ${(difference / 1000).toFixed(1)} s`;
  if (difference >= AN_ERROR) return [error(message, REMEDY)];
  return [difference >= WORTH_A_WARNING ? warning(message, REMEDY) : ok(message)];
};
