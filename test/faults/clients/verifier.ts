import { setTimeout as sleep } from "node:timers/promises";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import type { Member } from "./member.ts";
import { type KnownCredential, type Method, verify } from "./verify.ts";

/** The keys that verifiers choose from. */
export interface KeyPools {
  /** Recently changed keys. */
  readonly hot: readonly Register[];
  /** Returns keys that are still being changed. */
  live(): readonly Register[];
}

/** The behavior of a verifier: its methods, the number of credentials per request, and the pause in milliseconds. */
export interface VerifierProfile {
  readonly methods: readonly Method[];
  readonly size: number;
  readonly pause: number;
}

/** Verifies on one node until the signal aborts, recently changed keys more often than others. */
export async function runVerifier(
  history: History,
  member: Member,
  { methods, size, pause }: VerifierProfile,
  pools: KeyPools,
  seeded: Seeded,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const selected = Array.from({ length: size }, () => choose(history, pools, seeded)).flat();
    await verify(history, member, seeded.pick(methods), selected);
    await sleep(pause);
  }
}

/** Chooses a credential, also of keys that are no longer changed, since a revoked key must stay revoked. */
function choose(history: History, pools: KeyPools, seeded: Seeded): KnownCredential[] {
  const chance = seeded.below(10);
  const among = chance < 5 ? pools.hot : chance < 8 ? pools.live() : history.registers.slice(-400);
  if (among.length === 0) return [];
  const register = seeded.pick(among);
  if (register.credentials.length === 0) return [];
  return [{ register, credential: seeded.pick(register.credentials) }];
}
