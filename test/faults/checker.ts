import { type KeyState, NO_KEY } from "./register.ts";

/** A call that changes a key. Times are those of one monotonic clock. */
export interface Change {
  readonly began: number;
  /** When it was acknowledged; null: it never was, so that it took effect at any time after it began, or never. */
  readonly acknowledged: number | null;
  readonly effect: (state: KeyState) => KeyState;
}

/** An answer that tells of the state of a key. */
export interface Observation {
  readonly began: number;
  readonly ended: number;
  readonly said: string;
  /** What it had to say in this state. */
  readonly expected: (state: KeyState) => string;
}

/** What a key may have come to. */
interface Reached {
  readonly state: KeyState;
  /** How many of the acknowledged changes have been made: always the first ones. */
  readonly acknowledged: number;
  /** Which of the others have been made. */
  readonly others: ReadonlySet<Change>;
  /** When the last one of all these was sent: before that, nobody can have seen this. */
  readonly since: number;
}

/**
 * The observations of one key that no state explains. Keys are regular registers (Lamport, On interprocess communication): an
 * answer must be that of a state in which each change acknowledged before the call began has been made, and none that had not
 * yet begun when the call ended. Two calls at the same time as a change may see it in either order, which linearizability would
 * forbid. `changes` are in the order they were sent, each after the one before had been answered or given up.
 */
export function unexplained<T extends Observation>(changes: readonly Change[], observations: readonly T[]): T[] {
  const acknowledged = changes.filter((change) => change.acknowledged !== null);
  const reached = reachable(changes, acknowledged);
  return observations.filter((observation) => {
    const needed = acknowledged.filter((change) => (change.acknowledged ?? 0) < observation.began).length;
    return !reached.some((one) => explains(one, needed, observation));
  });
}

function explains(reached: Reached, needed: number, { ended, said, expected }: Observation): boolean {
  return reached.acknowledged >= needed && reached.since <= ended && expected(reached.state) === said;
}

/** Whatever a key may come to: acknowledged changes in their order, the others anywhere after they were sent. */
function reachable(changes: readonly Change[], acknowledged: readonly Change[]): Reached[] {
  const all: Reached[] = [{ state: NO_KEY, acknowledged: 0, others: new Set(), since: Number.NEGATIVE_INFINITY }];
  const others = changes.filter((change) => change.acknowledged === null);
  for (const reached of all) {
    const next = acknowledged[reached.acknowledged];
    if (next !== undefined) all.push(after(reached, next, true));
    for (const other of others) {
      const before = acknowledged.filter((change) => changes.indexOf(change) < changes.indexOf(other)).length;
      if (!reached.others.has(other) && reached.acknowledged >= before) all.push(after(reached, other, false));
    }
  }
  return all;
}

function after(reached: Reached, change: Change, isAcknowledged: boolean): Reached {
  return {
    state: change.effect(reached.state),
    acknowledged: reached.acknowledged + (isAcknowledged ? 1 : 0),
    others: isAcknowledged ? reached.others : new Set(reached.others).add(change),
    since: Math.max(reached.since, change.began),
  };
}

/** A rotation of the signing key. */
export interface Rotation {
  readonly began: number;
  /** Null: the response with its `kid` was lost. */
  readonly acknowledged: number | null;
  readonly kid: string | null;
}

/** A token that was derived. */
export interface Signature {
  readonly began: number;
  readonly ended: number;
  readonly kid: string;
}

/** The tokens that were signed with a key that had been retired before the call began, or that nobody had made when it ended. */
export function wronglySigned<T extends Signature>(rotations: readonly Rotation[], signatures: readonly T[]): T[] {
  return signatures.filter(({ began, ended, kid }) => {
    const place = rotations.findIndex((rotation) => rotation.kid === kid);
    if (place === -1) return !rotations.some((rotation) => rotation.kid === null && rotation.began <= ended);
    if ((rotations[place]?.began ?? 0) > ended) return true;
    return rotations.slice(place + 1).some(({ acknowledged }) => acknowledged !== null && acknowledged < began);
  });
}
