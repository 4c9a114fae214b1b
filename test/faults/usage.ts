import { UsageFlusher } from "../../src/usage/flush.ts";
import { readUsage } from "../support/stored-usage.ts";
import type { ClusterNode } from "./cluster.ts";
import type { Call, History, Read } from "./history.ts";

/** The usage of keys in the database must be what clients were answered, less what killed nodes had not stored. */

/** A process of a node that has ended. Milliseconds of `performance.now()`. */
export interface EndedProcess {
  readonly node: string;
  /** What it has counted before is stored. Infinite if it was stopped, and has stored the rest then. */
  readonly storedUntil: number;
  readonly ended: number;
  /** When the next process of the node served; infinite if there is none. */
  restarted: number;
}

/** Verdicts that name no key. */
const WITHOUT_KEY = /^(NOT_FOUND|INVALID_FORMAT|SIGNATURE_INVALID)/;

/** Calls whose results are verdicts, but which are no verifications. */
const NOT_COUNTED: ReadonlySet<string> = new Set(["derive", "self-revoke"]);

/** Milliseconds in which a response of a killed process may still be read by a busy client. The next process takes longer to start. */
const LATE_RESPONSES = 1_000;

/** Milliseconds for which a process may serve before it reports that it does. */
const LATE_REPORT = 500;

/**
 * Stops the nodes, so that they store their counts, and returns what is wrong with the usage in the database with this URL, which may lack
 * transactions that it has acknowledged.
 */
export async function verifyUsage(
  history: History,
  nodes: readonly ClusterNode[],
  url: string,
  mayLose = false,
): Promise<string[]> {
  await Promise.all(nodes.map((node) => node.stop()));
  const { all: stored, byHour } = await readUsage(url);
  const ended = nodes.flatMap((node) => node.endedProcesses);
  const found = expectUsage(history, ended);
  const expected = mayLose ? { ...found, least: 0 } : found;
  console.info(`usage: ${stored} verifications are stored; from ${expected.least} to ${expected.most} are expected`);
  const ofHours = stored === byHour ? [] : [`${stored} verifications are stored, ${byHour} in the hours of the run`];
  const unstored = nodes
    .filter((node) => node.endedProcesses.at(-1)?.storedUntil !== Number.POSITIVE_INFINITY)
    .map(({ name }) => `${name} has not stored its usage at the end`);
  return [...unstored, ...ofHours, ...compareUsage(stored, expected)];
}

/** The bounds of the stored verifications, both inclusive. */
interface ExpectedUsage {
  readonly least: number;
  readonly most: number;
}

/** Returns what the responses show. A call without a response may have been counted, unless no process received it. */
export function expectUsage({ registers, calls }: History, ended: readonly EndedProcess[]): ExpectedUsage {
  const verdicts = registers.flatMap(({ reads }) => reads.filter(isCounted));
  const isUnstored = (verdict: Pick<Read, "node" | "ended">) =>
    ended.some(
      (process) =>
        process.node === verdict.node &&
        process.storedUntil < verdict.ended &&
        verdict.ended <= process.ended + LATE_RESPONSES,
    );
  const isReceived = ({ node, began, ended: end }: Call) =>
    !ended.some((process) => process.node === node && process.ended < began && end < process.restarted - LATE_REPORT);
  const unstored = verdicts.filter(isUnstored).length;
  const lost = calls.filter((call) => call.kind === "verify" && call.outcome === "lost" && isReceived(call));
  const most = verdicts.length + lost.reduce((sum, { count }) => sum + count, 0);
  return { least: verdicts.length - unstored, most };
}

export function compareUsage(stored: number, { least, most }: ExpectedUsage): string[] {
  if (stored >= least && stored <= most) return [];
  return [`the usage has ${stored} verifications; from ${least} to ${most} are expected`];
}

function isCounted({ credential, by, observed }: Read): boolean {
  return credential !== undefined && !NOT_COUNTED.has(by) && !WITHOUT_KEY.test(observed);
}

/** What a process reports of a run of its flusher. */
export interface UsageReport {
  /** When it began, in milliseconds of the monotonic clock. Everything that was counted before is stored if it succeeded. */
  readonly began: number;
  readonly state: "running" | "stored" | "failed";
}

/** Makes this process send what its flusher does. */
export function reportUsage(): void {
  const { run } = UsageFlusher.prototype;
  UsageFlusher.prototype.run = async function (): Promise<void> {
    const began = monotonicTime();
    const report = (state: UsageReport["state"]) => process.send?.({ usage: { began, state } });
    report("running");
    try {
      await run.call(this);
      report("stored");
    } catch (error) {
      report("failed");
      throw error;
    }
  };
}

/** The monotonic clock of the machine, which all processes share. Milliseconds. */
export function monotonicTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
