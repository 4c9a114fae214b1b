import type { SecretDigest } from "../domain/key.ts";
import type { VerifiableRecord } from "../domain/key-lookup.ts";
import { callDetails, type Principal } from "../domain/principal.ts";
import type { Clock } from "../lib/clock.ts";
import { ClockCache } from "../lib/clock-cache.ts";
import { withTimeout } from "../lib/with-timeout.ts";

/** The digests of the raw key, to be stored in place of that of its hash. */
export interface Adoption {
  readonly keyId: string;
  /** What is stored, and must not have changed. */
  readonly hashDigest: SecretDigest;
  /** Under the current server key. */
  readonly digest: SecretDigest;
  readonly otherDigests: readonly SecretDigest[];
}

/** `already`: the key was adopted, revoked or deleted before, or has expired. */
export type AdoptionOutcome = "adopted" | "already";

/** Stores an adoption if the key still has the hash. */
export type StoreAdoption = (adoption: Adoption, principal: Principal) => Promise<AdoptionOutcome>;

/** Returns the adoption of a key that matches a raw key with these digests; null if it is adopted. */
export function adoptionOf(
  [digest, ...otherDigests]: readonly SecretDigest[],
  { key, secrets: [secret] }: VerifiableRecord,
): Adoption | null {
  if (secret?.hash === undefined || digest === undefined) return null;
  return { keyId: key.keyId, hashDigest: secret.digest, digest, otherDigests };
}

export interface AdopterOptions {
  readonly store: StoreAdoption;
  readonly clock: Clock;
  readonly onOutcome: (outcome: AdoptionOutcome | "failed") => void;
  /** Called with the first failure of each key. */
  readonly onFailure: (keyId: string, error: unknown) => void;
}

export type Adopter = ReturnType<typeof createAdopter>;

/** Statements in flight. Adoption must not take the connections of the changes that callers wait for. */
const MAX_RUNNING = 2;
const MAX_WAITING = 1_000;

/** Milliseconds after a failure in which the key is not tried again, and the number of keys for which it is known. */
const RETRY_DELAY = 10_000;
const MAX_FAILED = 10_000;
const STOP_TIMEOUT = 5_000;

/** Adopts keys in the background. */
export function createAdopter({ store, clock, onOutcome, onFailure }: AdopterOptions) {
  /** By key id, in the order of their verifications. */
  const waiting = new Map<string, { readonly adoption: Adoption; readonly caller: Principal }>();
  const running = new Map<string, Promise<void>>();
  /** When the adoption of a key last failed. */
  const failures = new ClockCache<number>(MAX_FAILED);
  let isStopped = false;

  const run = async (adoption: Adoption, caller: Principal): Promise<void> => {
    try {
      onOutcome(await store(adoption, caller));
      failures.delete(adoption.keyId);
    } catch (error) {
      onOutcome("failed");
      if (failures.get(adoption.keyId) === undefined) onFailure(adoption.keyId, error);
      failures.set(adoption.keyId, clock.now());
    }
  };
  const startNext = (): void => {
    for (const [keyId, { adoption, caller }] of waiting) {
      if (running.size >= MAX_RUNNING) return;
      waiting.delete(keyId);
      const ended = run(adoption, caller).finally(() => {
        running.delete(keyId);
        startNext();
      });
      running.set(keyId, ended);
    }
  };
  return {
    /** Adopts a key unless its adoption is in flight or has just failed, or too many wait: the next verification tries again. */
    adopt: (adoption: Adoption, caller: Principal): void => {
      const { keyId } = adoption;
      if (isStopped || waiting.size >= MAX_WAITING || waiting.has(keyId) || running.has(keyId)) return;
      if (clock.now() - (failures.get(keyId) ?? Number.NEGATIVE_INFINITY) < RETRY_DELAY) return;
      waiting.set(keyId, { adoption, caller: { ...caller, ...callDetails(caller) } });
      startNext();
    },
    /** Drops what waits, and resolves when what is in flight has ended or the time is over. */
    stop: async (): Promise<void> => {
      isStopped = true;
      waiting.clear();
      await withTimeout(Promise.all(running.values()), STOP_TIMEOUT, () => undefined);
    },
  };
}
