import { listNodes, type NodeStatus } from "../postgres/nodes.ts";
import { withFoundation } from "./command.ts";
import { table } from "./table.ts";

/** Prints the servers on the database, one a line. */
export function showCluster(): Promise<void> {
  return withFoundation(async ({ database }) => {
    const nodes = await listNodes(database);
    if (nodes.length === 0) console.error("no server is running on this database");
    else console.log(table([HEADER, ...nodes.map(columnsOf)]));
  });
}

const HEADER = ["NAME", "VERSION", "STATE", "LEASE AGE", "LEASE", "FEED LAG", "SINCE"];

function columnsOf({ name, version, leaseAge, ttl, feedLag, joinTime }: NodeStatus): string[] {
  const state = leaseAge <= ttl ? "live" : "gone";
  const lag = feedLag === null ? "-" : `${feedLag.toFixed(1)} ms`;
  return [name, version, state, seconds(leaseAge), seconds(ttl), lag, joinTime.toISOString()];
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
