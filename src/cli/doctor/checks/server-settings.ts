import { availableParallelism } from "node:os";
import { listNodes } from "../../../postgres/cluster/nodes.ts";
import {
  readConfiguredSettings,
  readServerSettings,
  type ServerSettings,
} from "../../../postgres/connection/server-settings.ts";
import { OUTSIDE_POOL } from "../../../server/config/config.ts";
import { type Check, type DatabaseContext, error, ok, warning } from "../finding.ts";

/** The oldest supported release (postgresql.org/support/versioning). The tests run on 18. */
const OLDEST = 15;

export const checkVersion: Check<DatabaseContext> = async ({ database }) => {
  const { versionNumber, version, isReadOnly } = await readServerSettings(database);
  if (isReadOnly) return [error("the database is read-only", "set KEYHOLD_DATABASE_URL to the primary")];
  return [evaluateVersion({ versionNumber, version })];
};

export function evaluateVersion({ versionNumber, version }: Pick<ServerSettings, "versionNumber" | "version">) {
  if (versionNumber >= OLDEST * 10_000) return ok(`PostgreSQL ${version}`);
  return error(`PostgreSQL ${version} is not supported`, `upgrade to ${OLDEST} or later`);
}

/** Checks that commits are durable: a database that loses commits loses revocations (docs/consistency.md). */
export const checkDurability: Check<DatabaseContext> = async ({ database }) => {
  const { fsync, fullPageWrites, synchronousCommit } = await readServerSettings(database);
  const settings = { fsync, full_page_writes: fullPageWrites, synchronous_commit: synchronousCommit };
  const off = Object.entries(settings).flatMap(([name, isOn]) => (isOn ? [] : [name]));
  if (off.length === 0) return [ok("committed data survives a crash")];
  return off.map((name) => error(`${name} is off: a crash may lose a revocation`, `set ${name} = on in PostgreSQL`));
};

/** Checks that the database and the role give our sessions no setting that Keyhold has to override. */
export const checkSessionSettings: Check<DatabaseContext> = async ({ database }) => {
  const foreign = (await readConfiguredSettings(database)).filter(({ isForeign }) => isForeign);
  if (foreign.length === 0) return [ok("the database and the role do not change session settings that Keyhold needs")];
  return foreign.map(({ statement, name, value }) => {
    const message = `${statement} SET ${name} = '${value}': Keyhold overrides this setting where permitted, but a pooler can discard the override`;
    return warning(message, `${statement} RESET ${name}`);
  });
};

/** Milliseconds. Leases and revocations do not depend on wall clocks; expiry and grace periods do (docs/consistency.md). */
const CLOCK_WARNING = 1_000;
const CLOCK_ERROR = 60_000;

const CLOCK_REMEDY = "synchronize the clocks of both machines (NTP): each server evaluates expiry by its own clock";

export const checkClock: Check<DatabaseContext> = async (context) => {
  return [...(await checkOwnClock(context)), ...(await checkNodeClocks(context))];
};

/** The clocks of the running servers, as they measure them. */
const checkNodeClocks: Check<DatabaseContext> = async ({ database, hasSchema }) => {
  const nodes = hasSchema ? await listNodes(database) : [];
  return nodes.flatMap(({ name, leaseAge, ttl, clockAhead }) => {
    const difference = Math.abs(clockAhead ?? 0);
    if (leaseAge > ttl || difference < CLOCK_WARNING) return [];
    const message = `the clocks of the server ${name} and the database differ by ${(difference / 1000).toFixed(1)} s`;
    return [difference >= CLOCK_ERROR ? error(message, CLOCK_REMEDY) : warning(message, CLOCK_REMEDY)];
  });
};

const checkOwnClock: Check<DatabaseContext> = async ({ database, clock }) => {
  const before = clock.now();
  const { time } = await readServerSettings(database);
  const after = clock.now();
  // The database answered at some time in between.
  const difference = Math.max(0, before - time, time - after);
  const message = `the clocks of this machine and the database differ by ${(difference / 1000).toFixed(1)} s`;
  if (difference >= CLOCK_ERROR) return [error(message, CLOCK_REMEDY)];
  return [difference >= CLOCK_WARNING ? warning(message, CLOCK_REMEDY) : ok(message)];
};

const REMEDY = "raise max_connections, or lower KEYHOLD_DATABASE_POOL_SIZE or the number of workers";

/** Checks that the connections of all servers fit. Assumes that the other servers have the configuration of this one. */
export const checkConnections: Check<DatabaseContext> = async ({ config, database, hasSchema }) => {
  const { connections } = await readServerSettings(database);
  const workers = config.workers === "auto" ? availableParallelism() : config.workers;
  const each = config.databasePoolSize + OUTSIDE_POOL;
  if (workers * each > connections && config.databaseUrl !== null) {
    const message = `${workers} process(es) with ${each} connections each exceed the database's ${connections}`;
    return [error(message, REMEDY)];
  }
  const running = hasSchema ? (await listNodes(database)).filter(({ leaseAge, ttl }) => leaseAge <= ttl).length : 0;
  const needed = running * each;
  const message = `${running} running process(es) may use ${needed} of ${connections} connections`;
  return [needed > connections ? warning(message, REMEDY) : ok(message)];
};
