/** A step from one state to another. */
export interface Step<State> {
  readonly label: string;
  readonly state: State;
}

export interface Machine<State> {
  readonly initial: State;
  /** Every step that is possible in a state, always in the same order. */
  readonly next: (state: State) => readonly Step<State>[];
  /** Two states with equal keys are taken for one. */
  readonly key: (state: State) => string;
  readonly isViolation: (state: State) => boolean;
  /** What has to be possible, for the model to say anything. */
  readonly goals: Readonly<Record<string, (state: State) => boolean>>;
}

export interface Result {
  readonly states: number;
  readonly steps: number;
  /** The longest of the shortest ways to a state. */
  readonly depth: number;
  /** The labels of a shortest way to a violation; null: there is none. */
  readonly counterexample: readonly string[] | null;
  /** The goals that were not reached. */
  readonly missed: readonly string[];
}

/**
 * Visits every state that can be reached, breadth first, until a violation is found. Keeps keys, not states: the counterexample is
 * replayed from the number of each step among those of its state.
 *
 * @throws RangeError when there are more than `limit` states.
 */
export function explore<State>({ initial, next, key, isViolation, goals }: Machine<State>, limit = 20_000_000): Result {
  const seen = new Set([key(initial)]);
  const origins: Origin[] = [{ parent: -1, choice: -1 }];
  const missed = new Map(Object.entries(goals));
  let [steps, depth] = [0, 0];
  const result = (violation: number | null): Result => ({
    states: seen.size,
    steps,
    depth,
    counterexample: violation === null ? null : replay(initial, next, origins, violation),
    missed: [...missed.keys()],
  });
  for (let [level, first] = [[initial], 0]; level.length > 0; depth++) {
    const following: State[] = [];
    const firstOfNext = origins.length;
    for (const [index, state] of level.entries()) {
      for (const [goal, isReached] of missed) if (isReached(state)) missed.delete(goal);
      for (const [choice, { state: successor }] of next(state).entries()) {
        steps++;
        const before = seen.size;
        if (seen.add(key(successor)).size === before) continue;
        if (before === limit) throw new RangeError(`more than ${limit} states`);
        following.push(successor);
        origins.push({ parent: first + index, choice });
        if (isViolation(successor)) return result(origins.length - 1);
      }
    }
    [level, first] = [following, firstOfNext];
  }
  return result(null);
}

/** The state that a state was first reached from, by its number, and by which of its steps. */
interface Origin {
  readonly parent: number;
  readonly choice: number;
}

function replay<State>(
  initial: State,
  next: Machine<State>["next"],
  origins: readonly Origin[],
  violation: number,
): string[] {
  const choices: number[] = [];
  for (let at = origins[violation]; at !== undefined && at.parent >= 0; at = origins[at.parent])
    choices.unshift(at.choice);
  let state = initial;
  return choices.map((choice) => {
    const step = next(state)[choice];
    if (step === undefined) throw new Error("the steps of a state are not always the same");
    state = step.state;
    return step.label;
  });
}
