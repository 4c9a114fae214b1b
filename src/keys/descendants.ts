import { KeyholdError } from "../domain/errors.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeysContext } from "./context.ts";
import { keyNotFound } from "./rejection.ts";
import { revokeKey } from "./revoke.ts";
import type { KeyName, Revocation } from "./store.ts";
import { startWork, type WorkControl } from "./time-box.ts";

/** The descendants of an admin token: the keys that were created with it, those that were created with them, and so on. */
export interface DescendantStore {
  /**
   * Finds and revokes descendants that the principal may change, at most `limit`. Returns how many it found, none if there are none any more,
   * and the ids of those it revoked: fewer if another call has revoked some.
   */
  revokeSome(
    keyId: string,
    revocation: Revocation,
    principal: Principal,
    limit: number,
    now: Date,
  ): Promise<{ readonly found: number; readonly revoked: readonly string[] }>;
  /** Returns the number of descendants that are not revoked, among those that the principal may see. */
  count(keyId: string, principal: Principal): Promise<number>;
}

/** A revoked key. */
export interface RevokedTree {
  readonly key: ApiKey;
  /** Number of descendants that the call revoked. */
  readonly descendantCount: number;
  /** Number of descendants that are not revoked: the principal may not revoke them, or the call was not `done`. */
  readonly remainingDescendantCount: number;
  /** Whether every descendant that the principal may revoke is revoked; otherwise another call continues. */
  readonly done: boolean;
}

/**
 * Revokes a key and its descendants, for some seconds: until all are revoked, or `mayContinue` returns false. A revoked creator cannot create
 * keys any more, and its revocation has waited for those in flight (migration 0018), so descendants are found until there are none. Throws
 * `API_KEY_ALREADY_REVOKED` if nothing was left to revoke.
 */
export async function revokeWithDescendants(
  context: KeysContext,
  principal: Principal,
  name: KeyName,
  revocation: Revocation,
  control: WorkControl,
): Promise<RevokedTree> {
  const work = startWork(control);
  const { descendants, clock } = context;
  const revoked = await revokeKey(context, principal, name, revocation).catch((error: unknown) => {
    if (error instanceof KeyholdError && error.code === "API_KEY_ALREADY_REVOKED") return error;
    throw error;
  });
  let descendantCount = 0;
  const isComplete = await work(async (size) => {
    const now = new Date(clock.now());
    const slice = await descendants.revokeSome(name.keyId, revocation, principal, size, now);
    control.onChanged(slice.revoked);
    descendantCount += slice.revoked.length;
    return slice.found === 0;
  });
  const remainingDescendantCount = await descendants.count(name.keyId, principal);
  const counts = { descendantCount, remainingDescendantCount, done: isComplete || remainingDescendantCount === 0 };
  if (!(revoked instanceof KeyholdError)) return { key: revoked, ...counts };
  if (descendantCount + remainingDescendantCount === 0) throw revoked;
  const stored = await context.store.get(name);
  if (stored === null) throw keyNotFound(name);
  return { key: stored.key, ...counts };
}
