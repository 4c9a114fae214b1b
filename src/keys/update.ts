import { invalidArgument } from "../domain/errors.ts";
import type { ApiKey } from "../domain/key.ts";
import { checkMetadata, uniqueScopes } from "../domain/limits.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeysContext } from "./context.ts";
import { explainRejection, rejectUnlessActive } from "./rejection.ts";
import { requireReservedScopes } from "./reserved-scopes.ts";
import type { KeyChanges, KeyName } from "./store.ts";

/** Updates an active key. Absent fields of `changes` stay unchanged. */
export async function updateKey(
  { store, clock }: KeysContext,
  principal: Principal,
  name: KeyName,
  changes: KeyChanges,
): Promise<ApiKey> {
  const checked = checkChanges(changes, principal);
  const now = clock.now();
  const updated = await store.update(name, checked, principal, new Date(now));
  if (updated !== null) return updated;
  throw await explainRejection(store, name, principal, now, rejectUnlessActive);
}

function checkChanges(changes: KeyChanges, principal: Principal): KeyChanges {
  if (changes.name === "") throw invalidArgument("name", "must not be cleared");
  if (changes.metadata !== undefined) checkMetadata(changes.metadata, "metadata");
  if (changes.scopes === undefined) return changes;
  requireReservedScopes(changes.scopes, principal);
  return { ...changes, scopes: uniqueScopes(changes.scopes) };
}
