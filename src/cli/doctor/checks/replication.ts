import {
  isSynchronousName,
  type Replication,
  readReplication,
  type Standby,
  type SynchronousStandbys,
} from "../../../postgres/connection/replication.ts";
import { type Check, type DatabaseContext, error, type Finding, ok, warning } from "../finding.ts";

/** Checks what a failover may lose, and what blocks while a standby is down (docs/operating.md, "Failover"). */
export const checkReplication: Check<DatabaseContext> = async ({ database }) =>
  evaluateReplication(await readReplication(database));

const LOSS = "a promoted standby may lack acknowledged revocations";

export function evaluateReplication(replication: Replication): Finding[] {
  const { synchronous, standbys } = replication;
  if (synchronous !== null) return evaluateSynchronous(replication, synchronous);
  if (standbys.length === 0) return [ok("one server without standbys: nothing to fail over to")];
  const message = `commits do not wait for a standby, but ${nameAll(standbys)} may be promoted: ${LOSS}`;
  return [warning(message, `set synchronous_standby_names = '${exampleFor(standbys)}' in PostgreSQL`)];
}

function evaluateSynchronous(replication: Replication, synchronous: SynchronousStandbys): Finding[] {
  const { standbys, synchronousStandbyNames: setting, role } = replication;
  const candidates = standbys.filter(
    ({ name, state }) => isSynchronousName(synchronous, name) && (state === null || state === "streaming"),
  );
  const others = standbys.filter(({ name }) => !isSynchronousName(synchronous, name));
  return [
    evaluateCommit(replication.synchronousCommit),
    evaluateCount(setting, synchronous, candidates),
    ...(others.length === 0 ? [] : [ok(`${nameAll(others)}: asynchronous, do not promote (${LOSS})`)]),
    ...(standbys.every(({ state }) => state !== null)
      ? []
      : [ok(`replication state unknown: role ${role} cannot read it (GRANT pg_read_all_stats)`)]),
  ];
}

/** `checkDurability` reports `off`. */
function evaluateCommit(synchronousCommit: string): Finding {
  const remedy = "set synchronous_commit = on for the role, the database and the server in PostgreSQL";
  const set = `synchronous_commit is ${synchronousCommit}`;
  if (synchronousCommit === "local" || synchronousCommit === "off")
    return error(`${set}: commits do not wait for synchronous standbys, so ${LOSS}`, remedy);
  if (synchronousCommit === "remote_write")
    return warning(`${set}: if a standby's OS crashes before promotion, acknowledged revocations may be lost`, remedy);
  return ok(`${set}: a change is acknowledged when the synchronous standbys have it on disk`);
}

function evaluateCount(
  setting: string,
  { count, method, names }: SynchronousStandbys,
  candidates: readonly Standby[],
): Finding {
  const set = `synchronous_standby_names is ${setting}`;
  const connected = `${candidates.length === 0 ? "none" : nameAll(candidates)} of its standbys ${candidates.length > 1 ? "are" : "is"} connected`;
  if (candidates.length < count)
    return error(
      `${set}, and ${connected}: all changes and verifications block until ${count} standby(s) are connected`,
      "start the standbys, or list only running standbys: without a running standby, a failover loses changes",
    );
  if (candidates.length === count)
    return warning(
      `${set}, and ${connected}: all changes and verifications block while ${count === 1 ? "it" : "one of the standbys"} is down`,
      `add a standby to synchronous_standby_names, as in ANY ${count} (${[...names, `s${names.length + 1}`].join(", ")})`,
    );
  const who = method === "ANY" ? "the standby that has received the most WAL" : "the first standby in the list";
  return ok(`${set}, and ${connected}: commits wait for ${count}; promote ${who}`);
}

function nameAll(standbys: readonly Standby[]): string {
  return standbys.map(({ name }) => name).join(", ");
}

function exampleFor(standbys: readonly Standby[]): string {
  const names = [...new Set(standbys.map(({ name }) => name))];
  return `ANY 1 (${names.map((name) => (/^[a-z_]\w*$/.test(name) ? name : `"${name}"`)).join(", ")})`;
}
