import { Barriers } from "../../src/cluster/barriers.ts";
import { ClusterSession } from "../../src/cluster/cluster-session.ts";
import { DatabaseHistory } from "../../src/cluster/history.ts";
import { Lease } from "../../src/cluster/lease.ts";

/** Points at which a node can be stopped: before and after each step of its protocol. */

/** The methods that implement the steps; the product itself has no switch for this. */
const STEPS = {
  session: [ClusterSession, "open"],
  check: [DatabaseHistory.prototype, "check"],
  join: [ClusterSession.prototype, "join"],
  renewal: [ClusterSession.prototype, "renew"],
  grant: [Lease.prototype, "extend"],
  barrier: [Barriers.prototype, "open"],
  acknowledgements: [Barriers.prototype, "wait"],
} as const;

type StepName = keyof typeof STEPS;

export type PausePoint = `${"before" | "after"} ${StepName}`;

export function pointsOf(...steps: readonly StepName[]): PausePoint[] {
  return steps.flatMap((step): PausePoint[] => [`before ${step}`, `after ${step}`]);
}

let armed: PausePoint | null = null;

/** Makes the process stop itself (SIGSTOP) the next time it reaches this point; null: never. */
export function pauseAt(point: PausePoint | null): void {
  armed = point;
}

function reach(point: PausePoint): void {
  if (armed !== point) return;
  armed = null;
  process.kill(process.pid, "SIGSTOP");
}

/** Instruments the steps, before the product starts. */
export function watchPausePoints(): void {
  for (const [step, [prototype, name]] of Object.entries(STEPS)) {
    const methods = prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
    const original = methods[name];
    methods[name] = function (...args) {
      reach(`before ${step as StepName}`);
      const result = original?.apply(this, args);
      if (!(result instanceof Promise)) reach(`after ${step as StepName}`);
      else result.then(() => reach(`after ${step as StepName}`)).catch(() => {});
      return result;
    };
  }
}
