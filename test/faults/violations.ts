import { invalidSignatures, unexplained } from "./checker.ts";
import type { History, Mutation, Read } from "./history.ts";
import { NO_KEY, verdictOn } from "./register.ts";
import { acceptedTokens, isRejectedByRevocation } from "./signing-keys.ts";

/** A wrong response. `began` is the start of the call. */
export interface Violation {
  readonly began: number;
  /** Milliseconds since the last acknowledged change before it; null if there is none. */
  readonly late: number | null;
  readonly text: string;
}

/**
 * Returns all violations of a history, ordered by time. `lost` are changes that the database has lost after their execution: responses
 * about their keys may include or exclude them at any time.
 */
export function findViolations(history: History, lost: ReadonlySet<Mutation> = new Set()): Violation[] {
  const { revocations } = history;
  const accepted = history.registers.flatMap(({ reads }) => acceptedTokens(revocations, reads));
  const reads = history.registers.flatMap(({ mutations, reads: all }) => {
    const reads = all.filter((read) => !isRejectedByRevocation(revocations, read));
    const unexplainedWithAll = unexplained(mutations, reads);
    return mutations.some((mutation) => lost.has(mutation))
      ? unexplainedWithout(lost, mutations, unexplainedWithAll)
      : unexplainedWithAll;
  });
  const signatures = invalidSignatures(history.rotations, history.signatures);
  return [
    ...reads.map((read) => ({
      began: read.began,
      late: lateness(read),
      text: describe(read),
    })),
    ...accepted.map(({ by, node, began, ended, observed }) => ({
      began,
      late: null,
      text: `${by} on ${node} ${at(began)}-${at(ended)} returned "${observed}" for a token of a revoked signing key`,
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
  const lostKeys = new Set(mutations.filter((one) => lost.has(one)).map(({ effect }) => effect(NO_KEY).generation));
  return unexplained(kept, reads).filter(({ credential, ...read }) => {
    // A token that was derived from a raw key after its key had been restored to an earlier generation, which the owner did not know.
    const isOfEarlierKey = credential !== undefined && credential.type !== "raw" && lostKeys.has(credential.generation);
    if (!isOfEarlierKey) return true;
    const expected: Read["expected"] = (state) =>
      verdictOn({ ...credential, generation: state.generation, secret: state.generation }, state);
    return unexplained(kept, [{ ...read, expected }]).length > 0;
  });
}

function lateness({ register, began }: Read): number | null {
  const before = register.mutations.flatMap(({ acknowledged }) =>
    acknowledged !== null && acknowledged <= began ? [acknowledged] : [],
  );
  return before.length === 0 ? null : began - Math.max(...before);
}

/** Describes a wrong response and the changes around it, without credentials. */
function describe({ register, node, by, began, ended, observed }: Read): string {
  const around = register.mutations
    .filter((one) => one.began <= ended && (one.acknowledged ?? began) > began - 20_000)
    .map(
      (one) => `${one.kind} on ${one.node} ${at(one.began)}-${one.acknowledged === null ? "?" : at(one.acknowledged)}`,
    );
  return `${register.name}: ${by} on ${node} ${at(began)}-${at(ended)} returned "${observed}" after ${around.join(", ")}`;
}

function at(time: number): string {
  return `${(time / 1000).toFixed(4)}s`;
}
