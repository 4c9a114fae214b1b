import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeysContext } from "./context.ts";
import { explainRejection, rejectIfRevoked } from "./rejection.ts";
import type { KeyName, Revocation } from "./store.ts";
import { changedMeanwhile } from "./update.ts";

/** Revokes a key permanently. Throws `API_KEY_ALREADY_REVOKED` if it is revoked, and keeps the first reason and description. */
export async function revokeKey(
  { store, clock }: KeysContext,
  principal: Principal,
  name: KeyName,
  revocation: Revocation,
): Promise<ApiKey> {
  const now = clock.now();
  const revoked = await store.revoke(name, revocation, principal, new Date(now));
  if (revoked !== null) return revoked;
  throw await explainRejection(store, name, principal, now, rejectIfRevoked, changedMeanwhile);
}
