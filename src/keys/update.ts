import { invalidArgument, KeyholdError } from "../domain/errors.ts";
import type { ApiKey, StoredKey } from "../domain/key.ts";
import { checkMetadata, uniqueScopes } from "../domain/limits.ts";
import { type Authority, requireAuthority } from "./authority.ts";
import type { KeysContext } from "./context.ts";
import { explainRejection, rejectUnlessActive } from "./rejection.ts";
import type { KeyChanges, KeyName } from "./store.ts";

/** Changes a key that is neither revoked nor expired. What `changes` leaves out stays. */
export async function updateKey(
  { store, clock }: KeysContext,
  name: KeyName,
  changes: KeyChanges,
  authority: Authority,
): Promise<ApiKey> {
  const checked = checkChanges(changes, authority);
  const now = clock.now();
  const updated = await store.update(name, checked, authority, new Date(now));
  if (updated !== null) return updated;
  throw await explainRejection(store, name, authority, now, rejectUnlessActive, changedMeanwhile);
}

function checkChanges(changes: KeyChanges, authority: Authority): KeyChanges {
  if (changes.name === "") throw invalidArgument("name", "must not be cleared");
  if (changes.metadata !== undefined) checkMetadata(changes.metadata, "metadata");
  if (changes.scopes === undefined) return changes;
  requireAuthority(changes.scopes, authority);
  return { ...changes, scopes: uniqueScopes(changes.scopes) };
}

/** The error of a change whose condition did not hold, and holds now. */
export function changedMeanwhile({ key }: StoredKey): KeyholdError {
  return new KeyholdError("CONCURRENT_CHANGE", `key ${key.keyId} was changed at the same time; repeat the call`, {
    metadata: { key_id: key.keyId },
  });
}
