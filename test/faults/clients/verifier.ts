import { setTimeout as sleep } from "node:timers/promises";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import type { Member } from "./member.ts";
import { type Shown, verify, type Way } from "./verify.ts";

/** Which keys are worth a look. */
export interface Interest {
  /** Changed a moment ago. */
  readonly hot: readonly Register[];
  /** That somebody goes on changing. */
  live(): readonly Register[];
}

/** How one verifier works: by which ways in turn, so many credentials at once, with a pause in milliseconds. */
export interface Habit {
  readonly ways: readonly Way[];
  readonly size: number;
  readonly pause: number;
}

/** Verifies on one node until it is stopped, hot keys more often than others. */
export async function runVerifier(
  history: History,
  member: Member,
  { ways, size, pause }: Habit,
  interest: Interest,
  seeded: Seeded,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const shown = Array.from({ length: size }, () => choose(history, interest, seeded)).flat();
    await verify(history, member, seeded.pick(ways), shown);
    await sleep(pause);
  }
}

/** Past keys count too: a dead one must not come back. */
function choose(history: History, interest: Interest, seeded: Seeded): Shown[] {
  const chance = seeded.below(10);
  const among = chance < 5 ? interest.hot : chance < 8 ? interest.live() : history.registers.slice(-400);
  if (among.length === 0) return [];
  const register = seeded.pick(among);
  if (register.credentials.length === 0) return [];
  return [{ register, credential: seeded.pick(register.credentials) }];
}
