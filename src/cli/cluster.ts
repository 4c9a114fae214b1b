import { acceptDatabase } from "../postgres/cluster/accepted-databases.ts";
import { listNodes, type NodeStatus } from "../postgres/cluster/nodes.ts";
import { writeServerLog } from "../postgres/connection/server-log.ts";
import { withResources } from "./command.ts";
import {
  type Cell,
  fieldCell,
  note,
  type OutputOptions,
  stateCell,
  tableText,
  write,
  writeJson,
  writeResult,
} from "./output.ts";

/** Prints the servers that share the database: a table, or a JSON array with durations in milliseconds. */
export function showCluster(options: OutputOptions): Promise<void> {
  return withResources(async ({ database }) => {
    const nodes = await listNodes(database);
    if (options.json === true) await writeJson(nodes.map(toJson));
    else if (nodes.length === 0) note("no running server uses this database");
    else await write(tableText(nodes.map(columnsOf), HEADER));
  });
}

/** Accepts the current state of the database, for servers that reject it because it has lost durable changes. */
export function acceptCurrentDatabase(options: OutputOptions): Promise<void> {
  return withResources(async ({ database }) => {
    const { systemIdentifier, timeline, lsn } = await acceptDatabase(database);
    const result = { system_identifier: systemIdentifier, timeline, lsn };
    await writeServerLog(database, "database_accepted", result);
    const state = `${systemIdentifier} on timeline ${timeline}, at ${lsn}`;
    await writeResult(options, result, `accepted database ${state}: servers rejoin within seconds`);
  });
}

const HEADER = ["NAME", "VERSION", "STATE", "LEASE AGE", "LEASE", "FEED LAG", "SINCE"];

function toJson({ name, version, leaseAge, ttl, feedLag, joinTime }: NodeStatus) {
  const times = { lease_age_ms: leaseAge, lease_ms: ttl, feed_lag_ms: feedLag, join_time: joinTime.toISOString() };
  return { name, version, state: leaseAge <= ttl ? "live" : "gone", ...times };
}

function columnsOf(node: NodeStatus): Cell[] {
  const { name, version, state, lease_age_ms: age, lease_ms: lease, feed_lag_ms: feedLag, join_time } = toJson(node);
  const lag = feedLag === null ? "-" : `${feedLag.toFixed(1)} ms`;
  return [name, version, stateCell(state), seconds(age), seconds(lease), lag, fieldCell("join_time", join_time)];
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
