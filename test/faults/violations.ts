import { unexplained, wronglySigned } from "./checker.ts";
import type { History, Mutation, Read } from "./history.ts";
import { NO_KEY, verdictOn } from "./register.ts";

/** Something that was said and should not have been. `began` is when the call did. */
export interface Violation {
  readonly began: number;
  /** Milliseconds since the last change before it was acknowledged; null where there is none. */
  readonly late: number | null;
  readonly text: string;
}

/**
 * All violations of a history, in the order of time. `lost` are changes that the database forgot after it had made them: what is said
 * of their keys may be with them or without them, at any time.
 */
export function judge(history: History, lost: ReadonlySet<Mutation> = new Set()): Violation[] {
  const reads = history.registers.flatMap(({ mutations, reads }) => {
    const unexplainedWithAll = unexplained(mutations, reads);
    return mutations.some((mutation) => lost.has(mutation))
      ? unexplainedWithout(lost, mutations, unexplainedWithAll)
      : unexplainedWithAll;
  });
  const signatures = wronglySigned(history.rotations, history.signatures);
  return [
    ...reads.map((read) => ({
      began: read.began,
      late: lateness(read),
      text: describe(read),
    })),
    ...signatures.map(({ began, node, kid }) => ({
      began,
      late: null,
      text: `${node} signed with the retired key ${kid} at ${at(began)}`,
    })),
  ].sort((a, b) => a.began - b.began);
}

function unexplainedWithout(
  lost: ReadonlySet<Mutation>,
  mutations: readonly Mutation[],
  reads: readonly Read[],
): Read[] {
  const kept = mutations.filter((mutation) => !lost.has(mutation));
  const lostKeys = new Set(mutations.filter((one) => lost.has(one)).map(({ effect }) => effect(NO_KEY).incarnation));
  return unexplained(kept, reads).filter(({ credential, ...read }) => {
    // Derived from a raw key, by an owner that did not know that the key had become an earlier one again.
    const isOfEarlierKey =
      credential !== undefined && credential.type !== "raw" && lostKeys.has(credential.incarnation);
    if (!isOfEarlierKey) return true;
    const expected: Read["expected"] = (state) =>
      verdictOn({ ...credential, incarnation: state.incarnation, secret: state.incarnation }, state);
    return unexplained(kept, [{ ...read, expected }]).length > 0;
  });
}

function lateness({ register, began }: Read): number | null {
  const before = register.mutations.flatMap(({ acknowledged }) =>
    acknowledged !== null && acknowledged <= began ? [acknowledged] : [],
  );
  return before.length === 0 ? null : began - Math.max(...before);
}

/** The changes around it, so that the reason may be seen; nothing of a credential. */
function describe({ register, node, by, began, ended, said }: Read): string {
  const around = register.mutations
    .filter((one) => one.began <= ended && (one.acknowledged ?? began) > began - 20_000)
    .map(
      (one) => `${one.kind} on ${one.node} ${at(one.began)}-${one.acknowledged === null ? "?" : at(one.acknowledged)}`,
    );
  return `${register.name}: ${by} on ${node} ${at(began)}-${at(ended)} said "${said}" after ${around.join(", ")}`;
}

function at(time: number): string {
  return `${(time / 1000).toFixed(4)}s`;
}
