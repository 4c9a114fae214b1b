import { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeyName, KeysContext, Revocation } from "./ports.ts";
import { keyNotFound } from "./rejection.ts";
import { revokeKey } from "./revoke.ts";
import { SLICES_PER_SEARCH, startWork, type WorkControl } from "./time-box.ts";

/**
 * Revokes a key and its descendants, for some seconds: until all are revoked, or `mayContinue` returns false. No key is created below a
 * revoked one (migration 0022), so the first revocation stops all creators; only those in flight may add keys, and are found by the next
 * search. Throws `API_KEY_ALREADY_REVOKED` if nothing was left to revoke.
 *
 * Returns the key, the number of descendants that the call revoked, and the number of those that are not revoked: the principal may not
 * revoke them, or the call was not `done` and another one continues.
 */
export async function revokeWithDescendants(
  context: KeysContext,
  principal: Principal,
  name: KeyName,
  revocation: Revocation,
  control: WorkControl,
) {
  const work = startWork(control);
  const { bulk, clock } = context;
  const revoked = await revokeKey(context, principal, name, revocation).catch((error: unknown) => {
    if (error instanceof KeyholdError && error.code === "API_KEY_ALREADY_REVOKED") return error;
    throw error;
  });
  const isOwn = principal.keyId === name.keyId && !(revoked instanceof KeyholdError);
  let [descendantCount, requiresCaller, found] = [0, !isOwn, [] as string[]];
  const isComplete = await work(async (size) => {
    const change = { verb: "revoke", ...revocation } as const;
    const many = { change, principal, requiresCaller, now: new Date(clock.now()) };
    if (found.length === 0) found = await bulk.findDescendants(name.keyId, many, size * SLICES_PER_SEARCH);
    if (found.length === 0) return true;
    const changed = await bulk.changeDescendants({ ...many, keyIds: found.splice(0, size) });
    control.onChanged(changed);
    descendantCount += changed.length;
    requiresCaller &&= !changed.some((keyId) => keyId === principal.keyId);
    return false;
  });
  const remainingDescendantCount = await bulk.countDescendants(name.keyId, principal);
  const counts = { descendantCount, remainingDescendantCount, done: isComplete || remainingDescendantCount === 0 };
  if (!(revoked instanceof KeyholdError)) return { key: revoked, ...counts };
  if (descendantCount + remainingDescendantCount === 0) throw revoked;
  const stored = await context.store.get(name);
  if (stored === null) throw keyNotFound(name);
  return { key: stored.key, ...counts };
}
