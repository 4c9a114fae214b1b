import {
  isSynchronousName,
  type Replication,
  readReplication,
  type Standby,
  type SynchronousStandbys,
} from "../../../postgres/replication.ts";
import { type Answering, type Check, error, type Finding, ok, warning } from "../finding.ts";

/** What a failover may lose, and what stops while a standby is down (docs/operating.md, "Failover"). */
export const checkReplication: Check<Answering> = async ({ database }) =>
  judgeReplication(await readReplication(database));

const LOSS = "a standby that is promoted may lack revocations that were answered";

export function judgeReplication(replication: Replication): Finding[] {
  const { synchronous, standbys } = replication;
  if (synchronous !== null) return judgeSynchronous(replication, synchronous);
  if (standbys.length === 0) return [ok("one server without standbys: nothing to fail over to")];
  const message = `commits wait for no standby, and ${nameAll(standbys)} may be promoted: ${LOSS}`;
  return [warning(message, `set synchronous_standby_names = '${exampleFor(standbys)}' in PostgreSQL`)];
}

function judgeSynchronous(replication: Replication, synchronous: SynchronousStandbys): Finding[] {
  const { standbys, synchronousStandbyNames: setting, role } = replication;
  const candidates = standbys.filter(
    ({ name, state }) => isSynchronousName(synchronous, name) && (state === null || state === "streaming"),
  );
  const others = standbys.filter(({ name }) => !isSynchronousName(synchronous, name));
  return [
    ...judgeCommit(replication.synchronousCommit),
    judgeNumber(setting, synchronous, candidates),
    ...(others.length === 0 ? [] : [ok(`${nameAll(others)}: asynchronous, not to be promoted (${LOSS})`)]),
    ...(standbys.every(({ state }) => state !== null)
      ? []
      : [ok(`whether standbys stream is unknown: role ${role} may not see it (GRANT pg_read_all_stats)`)]),
  ];
}

/** `off` is for the check of durability. */
function judgeCommit(synchronousCommit: string): Finding[] {
  const remedy = "set synchronous_commit = on for the role, the database and the server in PostgreSQL";
  const set = `synchronous_commit is ${synchronousCommit}`;
  if (synchronousCommit === "local" || synchronousCommit === "off")
    return [error(`${set}: commits do not wait for the synchronous standbys, so that ${LOSS}`, remedy)];
  if (synchronousCommit === "remote_write")
    return [
      warning(
        `${set}: a standby whose operating system crashes before it is promoted may lack revocations that were answered`,
        remedy,
      ),
    ];
  return [ok(`${set}: a change is answered when the synchronous standbys have it on disk`)];
}

function judgeNumber(
  setting: string,
  { count, method, names }: SynchronousStandbys,
  candidates: readonly Standby[],
): Finding {
  const set = `synchronous_standby_names is ${setting}`;
  const connected = `${candidates.length === 0 ? "none" : nameAll(candidates)} of its standbys ${candidates.length > 1 ? "are" : "is"} connected`;
  if (candidates.length < count)
    return error(
      `${set}, and ${connected}: nothing is changed or verified until ${count} are`,
      "start the standbys, or make the list one that the standbys that run fulfil: without any, a failover loses changes",
    );
  if (candidates.length === count)
    return warning(
      `${set}, and ${connected}: nothing is changed or verified while ${count === 1 ? "it" : "one of them"} is down`,
      `add a standby, such as ANY ${count} (${[...names, `s${names.length + 1}`].join(", ")})`,
    );
  const who = method === "ANY" ? "the one that has received the most" : "the first of the list";
  return ok(`${set}, and ${connected}: commits wait for ${count}; promote ${who}`);
}

function nameAll(standbys: readonly Standby[]): string {
  return standbys.map(({ name }) => name).join(", ");
}

function exampleFor(standbys: readonly Standby[]): string {
  const names = [...new Set(standbys.map(({ name }) => name))];
  return `ANY 1 (${names.map((name) => (/^[a-z_]\w*$/.test(name) ? name : `"${name}"`)).join(", ")})`;
}
