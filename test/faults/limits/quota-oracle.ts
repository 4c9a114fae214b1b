import { type Admission, type Period, within } from "./oracle.ts";

/** A verification by a node. */
export interface Call extends Admission {
  readonly node: string;
}

/** What clients were answered about one key. */
export interface Answers {
  readonly admitted: Call[];
  readonly denied: Call[];
  /** Calls without an answer, which may have been charged. */
  readonly unanswered: Call[];
  readonly unexpected: string[];
}

export interface QuotaPeriod extends Period {
  readonly limit: number;
  /** By which the clock of the clients and that of the database may differ. Milliseconds. */
  readonly tolerance: number;
  /** Their number. */
  readonly nodes: number;
  /** Calls whose tokens one fault can lose. */
  readonly inFlight: number;
}

/** All nodes together hold at most this part of what is left. */
const HELD_PART = 0.05;

/**
 * Returns how many calls were certainly admitted in a period, whether all nodes denied others, and how many tokens may have been lost or used unnoticed
 * before (docs/limits.md).
 */
export function useOf(answers: Answers, faults: readonly Admission[], options: QuotaPeriod) {
  const { limit, tolerance, from, to } = options;
  const inner = { from: from + tolerance, to: to - tolerance };
  const touches = ({ began, ended }: Admission) => began <= to + tolerance && ended >= from - tolerance;
  const certain = within(answers.admitted, inner);
  const uncertain = answers.admitted.filter(touches).length - certain.length;
  const denials = new Map<string, number>();
  for (const { node, ended } of within(answers.denied, inner))
    denials.set(node, Math.min(denials.get(node) ?? Number.POSITIVE_INFINITY, ended));
  // A node has no tokens when it denies, and gets none before the period ends.
  const mayUse = ({ node, began }: Call) => began <= (denials.get(node) ?? Number.POSITIVE_INFINITY);
  const failed = answers.unanswered.filter((call) => touches(call) && mayUse(call));
  const isUsedUp = denials.size === options.nodes;
  const end = isUsedUp ? Math.max(...denials.values()) : to + tolerance;
  const relevant = faults.filter((fault) => touches(fault) && fault.began <= end);
  let lost = uncertain + failed.filter(({ ended }) => ended < (relevant[0]?.began ?? Number.POSITIVE_INFINITY)).length;
  for (const [index, { began }] of relevant.entries()) {
    const [before, next] = [relevant[index - 1]?.ended ?? from, relevant[index + 1]?.began ?? Number.POSITIVE_INFINITY];
    const meanwhile = failed.filter((call) => call.ended >= began && call.began <= next).length;
    lost += Math.min(meanwhile, options.inFlight);
    // A node holds what it requested before the fault, when more was left.
    lost += HELD_PART * (limit - certain.filter(({ ended }) => ended < before).length);
  }
  return { certain: certain.length, isUsedUp, lost };
}
