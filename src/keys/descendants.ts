import { KeyholdError } from "../domain/errors.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeysContext } from "./context.ts";
import { keyNotFound } from "./rejection.ts";
import { revokeKey } from "./revoke.ts";
import type { KeyName, Revocation } from "./store.ts";

/** The descendants of an admin token: the keys that were created with it, those that were created with them, and so on. */
export interface DescendantStore {
  /**
   * Finds and revokes some of the descendants that the principal may change, none if there are none any more. Returns how many it found, and the
   * ids of those it revoked: fewer if another call has revoked some.
   */
  revokeSome(
    keyId: string,
    revocation: Revocation,
    principal: Principal,
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
  /** Number of descendants that the principal may not revoke. */
  readonly remainingDescendantCount: number;
}

/** Milliseconds that a call works. */
const PATIENCE = 30_000;

/**
 * Revokes a key and its descendants. A revoked creator cannot create keys any more, and its revocation has waited for those in flight
 * (migration 0018), so descendants are found until there are none. `onRevoked` receives the ids of descendants as they are revoked. Throws `API_KEY_ALREADY_REVOKED` if nothing was left to revoke.
 */
export async function revokeWithDescendants(
  context: KeysContext,
  principal: Principal,
  name: KeyName,
  revocation: Revocation,
  onRevoked: (keyIds: readonly string[]) => void,
): Promise<RevokedTree> {
  const revoked = await revokeKey(context, principal, name, revocation).catch((error: unknown) => {
    if (error instanceof KeyholdError && error.code === "API_KEY_ALREADY_REVOKED") return error;
    throw error;
  });
  const descendantCount = await revokeDescendants(context, principal, name.keyId, revocation, onRevoked);
  const remainingDescendantCount = await context.descendants.count(name.keyId, principal);
  if (!(revoked instanceof KeyholdError)) return { key: revoked, descendantCount, remainingDescendantCount };
  if (descendantCount + remainingDescendantCount === 0) throw revoked;
  const stored = await context.store.get(name);
  if (stored === null) throw keyNotFound(name);
  return { key: stored.key, descendantCount, remainingDescendantCount };
}

async function revokeDescendants(
  { descendants, clock }: KeysContext,
  principal: Principal,
  keyId: string,
  revocation: Revocation,
  onRevoked: (keyIds: readonly string[]) => void,
): Promise<number> {
  const start = clock.now();
  for (let count = 0; ; ) {
    const now = clock.now();
    if (now - start > PATIENCE) {
      const message = `${count} descendants are revoked, and there are more: repeat the call`;
      throw new KeyholdError("CHANGE_UNCONFIRMED", message);
    }
    const { found, revoked } = await descendants.revokeSome(keyId, revocation, principal, new Date(now));
    if (found === 0) return count;
    onRevoked(revoked);
    count += revoked.length;
  }
}
