import { checkAll, invalidArgument, type KeyholdError } from "../domain/errors.ts";
import type { ApiKey, KeyKind } from "../domain/key.ts";
import { checkMetadata, uniqueScopes } from "../domain/limits.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeysContext } from "./context.ts";
import { explainRejection, rejectUnlessActive } from "./rejection.ts";
import { requireHandled, requireReservedScopes } from "./reserved-scopes.ts";
import type { KeyName, KeyUpdate } from "./store.ts";

/** Updates an active key. Absent fields of `update` stay unchanged. Throws `INVALID_ARGUMENT` if it changes an immutable field. */
export async function updateKey(
  { store, clock }: KeysContext,
  principal: Principal,
  name: KeyName & { kind: KeyKind },
  update: KeyUpdate,
): Promise<ApiKey> {
  checkUpdate(update, name.kind);
  const checked = withUniqueScopes(update, principal);
  const now = clock.now();
  const updated = await store.update(name, checked, principal, new Date(now));
  if (updated !== null) return updated;
  throw await explainRejection(store, name, principal, now, (key) => {
    if (update.scopes !== undefined) requireHandled({ ...key, scopes: update.scopes }, principal);
    return rejectUnlessActive(key, now) ?? rejectImmutable(key, update);
  });
}

/** AIP-203: an immutable field may be sent again with its value. */
function rejectImmutable(key: ApiKey, { actorId = key.actorId }: KeyUpdate): KeyholdError | null {
  if (actorId === key.actorId) return null;
  const description = "is immutable, and the key has another value";
  return invalidArgument(`${key.kind}_api_key.actor_id`, description, "IMMUTABLE_FIELD");
}

/** Throws `INVALID_ARGUMENT` with every invalid field, by its path in the request. */
export function checkUpdate({ name, metadata }: KeyUpdate, kind: KeyKind): void {
  const resource = `${kind}_api_key`;
  checkAll(
    () => {
      if (name === "") throw invalidArgument(`${resource}.name`, "must not be cleared", "FIELD_REQUIRED");
    },
    () => metadata !== undefined && checkMetadata(metadata, `${resource}.metadata`),
  );
}

function withUniqueScopes(update: KeyUpdate, principal: Principal): KeyUpdate {
  if (update.scopes === undefined) return update;
  requireReservedScopes(update.scopes, principal);
  return { ...update, scopes: uniqueScopes(update.scopes) };
}
