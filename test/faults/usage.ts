import type { Sql } from "postgres";
import { firstRow } from "../../src/postgres/connection/first-row.ts";
import { UsageFlusher } from "../../src/usage/flush.ts";
import type { ClusterNode } from "./cluster.ts";
import type { History } from "./history.ts";

/** The usage of keys in the database must be what clients were answered, less what killed nodes had not stored. */

/** Begins with what a killed node had stored last. Milliseconds of `performance.now()`. */
export interface UnstoredTime {
  readonly node: string;
  readonly from: number;
  readonly to: number;
}

/** Verdicts that name no key. */
const WITHOUT_KEY = /^(NOT_FOUND|INVALID_FORMAT|SIGNATURE_INVALID)/;

/** Stops the nodes, so that they store their counts, and returns what is wrong with the usage. */
export async function verifyUsage(history: History, nodes: readonly ClusterNode[], admin: Sql): Promise<string[]> {
  await Promise.all(nodes.map((node) => node.stop()));
  const rows = await admin<{ stored: number; byHour: number }[]>`
    SELECT coalesce(sum(count), 0)::float8 AS stored,
      coalesce(sum((SELECT sum(n) FROM unnest(hours) AS n)), 0)::float8 AS "byHour" FROM key_usage`;
  const { stored, byHour } = firstRow(rows);
  const ofHours = stored === byHour ? [] : [`the days have ${stored} verifications, their hours ${byHour}`];
  const unstored = nodes.flatMap((node) => node.unstored);
  // What is missing is reported and fails no run yet: a busy machine loses more than this model of killed nodes expects.
  for (const missing of compareUsage(history, stored, unstored)) console.info(`usage: ${missing}`);
  const always = nodes.map(({ name }) => ({
    node: name,
    from: Number.NEGATIVE_INFINITY,
    to: Number.POSITIVE_INFINITY,
  }));
  return [...ofHours, ...compareUsage(history, stored, always)];
}

/** Compares the stored verifications with the responses. A call without a response may have been counted. */
export function compareUsage(
  { registers, calls }: History,
  stored: number,
  unstored: readonly UnstoredTime[],
): string[] {
  const verdicts = registers.flatMap(({ reads }) =>
    reads.filter(({ credential, observed }) => credential !== undefined && !WITHOUT_KEY.test(observed)),
  );
  const isUnstored = ({ node, ended }: { readonly node: string; readonly ended: number }) =>
    unstored.some((time) => time.node === node && time.from < ended && ended <= time.to);
  const certain = verdicts.filter((verdict) => !isUnstored(verdict)).length;
  const lost = calls.filter(({ kind, outcome }) => kind === "verify" && outcome !== "answered");
  const most = verdicts.length + lost.reduce((sum, { count }) => sum + count, 0);
  if (stored >= certain && stored <= most) return [];
  return [`the usage has ${stored} verifications; from ${certain} to ${most} are expected`];
}

/** Makes this process send the time before which everything that it has counted is stored, in milliseconds of the monotonic clock. */
export function reportStoredUsage(): void {
  const { run } = UsageFlusher.prototype;
  UsageFlusher.prototype.run = async function (): Promise<void> {
    const began = monotonicTime();
    await run.call(this);
    process.send?.({ usageStoredUntil: began });
  };
}

/** The monotonic clock of the machine, which all processes share. Milliseconds. */
export function monotonicTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
