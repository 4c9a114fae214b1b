import { isDeepStrictEqual } from "node:util";
import { checkReservedScopes } from "../domain/admin-scopes.ts";
import { checkAll, invalidArgument } from "../domain/errors.ts";
import { type Expiry, type Lifetimes, requireBounded, requireFuture, timeOf, tooLong } from "../domain/expiry.ts";
import type { ApiKey, KeyKind } from "../domain/key.ts";
import { checkMetadata } from "../domain/limits.ts";
import type { Principal } from "../domain/principal.ts";
import { assertCanManage, assertExpiresWithin, assertManageableScopes } from "./authorization.ts";
import { assertActive, type Check, changeKey } from "./change.ts";
import type { KeyName, KeysContext, KeyUpdate, NewExpiry } from "./ports.ts";

export interface UpdateInput extends Omit<KeyUpdate, "expiry"> {
  /** Null: the key shall not expire. */
  readonly expiry?: Expiry;
}

/**
 * Updates an active key by an input that `checkUpdate` accepts. Absent fields stay unchanged. Throws `INVALID_ARGUMENT` if it changes an
 * immutable field.
 */
export async function updateKey(
  context: KeysContext,
  principal: Principal,
  name: KeyName & { kind: KeyKind },
  { expiry, ...input }: UpdateInput,
): Promise<ApiKey> {
  const now = context.clock.now();
  if (input.scopes !== undefined) assertManageableScopes(input.scopes, principal);
  const update: KeyUpdate = {
    ...input,
    ...(input.scopes !== undefined && { scopes: [...new Set(input.scopes)] }),
    ...(expiry !== undefined && { expiry: newExpiryOf(expiry, context.lifetimes, now, name.kind) }),
  };
  const check: Check = (stored, time) => {
    const { key } = stored;
    if (update.scopes !== undefined) assertCanManage({ ...key, scopes: update.scopes }, principal);
    assertActive(stored, time);
    const { scopes = key.scopes, expiry } = update;
    assertExpiresWithin({ ...(expiry === undefined ? key : { expireTime: expiry.time }), scopes }, principal);
    assertImmutable(key, update);
    if (expiry !== undefined) assertMovable(key, expiry, time);
  };
  return changeKey(context, principal, name, { verb: "update", ...update }, check, now);
}

function newExpiryOf(expiry: Expiry, { maxKeyTtl }: Lifetimes, now: number, kind: KeyKind): NewExpiry {
  const time = timeOf(expiry, now);
  if (time !== null) requireBounded(time.getTime() - now, `${kind}_api_key.expire_time`);
  return { time, maxKeyTtl };
}

/** AIP-203: an immutable field may be sent again with its value. */
function assertImmutable(key: ApiKey, { actorId, restrictedToActorIds }: KeyUpdate): void {
  const isOther = (sent: unknown, stored: unknown) => sent !== undefined && !isDeepStrictEqual(sent, stored);
  const field = isOther(actorId, key.actorId)
    ? "actor_id"
    : isOther(restrictedToActorIds, key.restrictedToActorIds)
      ? "restricted_to_actor_ids"
      : null;
  if (field === null) return;
  const description = "is immutable, and the key has a different value";
  throw invalidArgument(`${key.kind}_api_key.${field}`, description, "IMMUTABLE_FIELD");
}

function assertMovable(key: ApiKey, { time, maxKeyTtl }: NewExpiry, now: number): void {
  const end = time?.getTime() ?? Number.POSITIVE_INFINITY;
  const before = key.expireTime?.getTime() ?? Number.POSITIVE_INFINITY;
  if (end === before) return;
  const field = `${key.kind}_api_key.expire_time`;
  requireFuture(end - now, field);
  if (maxKeyTtl !== null && end > before && end > key.createTime.getTime() + maxKeyTtl) throw tooLong(field);
}

/** Throws `INVALID_ARGUMENT` with every invalid field, by its path in the request. */
export function checkUpdate({ name, scopes, metadata }: UpdateInput, kind: KeyKind): void {
  const resource = `${kind}_api_key`;
  checkAll(
    () => {
      if (name === "") throw invalidArgument(`${resource}.name`, "must not be cleared", "FIELD_REQUIRED");
    },
    () => scopes !== undefined && checkReservedScopes(scopes, `${resource}.scopes`),
    () => metadata !== undefined && checkMetadata(metadata, `${resource}.metadata`),
  );
}
