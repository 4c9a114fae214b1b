import { type KeyState, NO_KEY } from "./register.ts";

/** A call that changes a key. Times are of one monotonic clock. */
export interface Change {
  readonly began: number;
  /** Time of the acknowledgement. Null: none; then the change takes effect at any time after it began, or never. */
  readonly acknowledged: number | null;
  readonly effect: (state: KeyState) => KeyState;
}

/** A response that shows the state of a key. */
export interface Observation {
  readonly began: number;
  readonly ended: number;
  readonly observed: string;
  /** The expected response in this state. */
  readonly expected: (state: KeyState) => string;
}

/** A state that a key may have reached. */
interface ReachableState {
  readonly state: KeyState;
  /** Number of acknowledged changes that have taken effect; they do so in order. */
  readonly acknowledged: number;
  /** The other changes that have taken effect. */
  readonly others: ReadonlySet<Change>;
  /** When the last of these changes was sent; no earlier response can show this state. */
  readonly since: number;
}

/**
 * Returns the observations of one key that no reachable state explains. Keys are regular registers (Lamport, On interprocess
 * communication): a response must show a state that includes each change acknowledged before the call began, and no change that began
 * after the call ended. Two calls concurrent with a change may observe it in either order, which linearizability would forbid. `changes`
 * are in the order in which they were sent; each was sent after the previous one was answered or had timed out.
 */
export function unexplained<T extends Observation>(changes: readonly Change[], observations: readonly T[]): T[] {
  const acknowledged = changes.filter((change) => change.acknowledged !== null);
  const reached = reachable(changes, acknowledged);
  return observations.filter((observation) => {
    const needed = acknowledged.filter((change) => (change.acknowledged ?? 0) < observation.began).length;
    return !reached.some((one) => explains(one, needed, observation));
  });
}

function explains(reached: ReachableState, needed: number, { ended, observed, expected }: Observation): boolean {
  return reached.acknowledged >= needed && reached.since <= ended && expected(reached.state) === observed;
}

/** Returns all states that a key may reach: acknowledged changes take effect in order, the others at any time after they were sent. */
function reachable(changes: readonly Change[], acknowledged: readonly Change[]): ReachableState[] {
  const all: ReachableState[] = [
    { state: NO_KEY, acknowledged: 0, others: new Set(), since: Number.NEGATIVE_INFINITY },
  ];
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

function after(reached: ReachableState, change: Change, isAcknowledged: boolean): ReachableState {
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

/** The signing of a derived token. */
export interface Signature {
  readonly began: number;
  readonly ended: number;
  readonly kid: string;
}

/** Returns the tokens signed with a key that had been retired before the call began, or that did not exist when it ended. */
export function invalidSignatures<T extends Signature>(rotations: readonly Rotation[], signatures: readonly T[]): T[] {
  return signatures.filter(({ began, ended, kid }) => {
    const place = rotations.findIndex((rotation) => rotation.kid === kid);
    if (place === -1) return !rotations.some((rotation) => rotation.kid === null && rotation.began <= ended);
    if ((rotations[place]?.began ?? 0) > ended) return true;
    return rotations.slice(place + 1).some(({ acknowledged }) => acknowledged !== null && acknowledged < began);
  });
}
