import { isDeepStrictEqual } from "node:util";
import { checkReservedScopes } from "../domain/admin-scopes.ts";
import { attempt, checkAll, invalidArgument, KeyholdError } from "../domain/errors.ts";
import { type Expiry, type Lifetimes, requireBounded, requireFuture, timeOf, tooLong } from "../domain/expiry.ts";
import type { ApiKey, KeyKind } from "../domain/key.ts";
import { checkMetadata, uniqueScopes } from "../domain/limits.ts";
import type { Principal } from "../domain/principal.ts";
import { assertCanManage, assertExpiresWithin, assertManageableScopes } from "./authorization.ts";
import { type Check, changeKey, rejectUnlessActive } from "./change.ts";
import type { KeyName, KeysContext, KeyUpdate, NewExpiry } from "./ports.ts";

/** The input of an update. */
export interface UpdateInput extends Omit<KeyUpdate, "expiry"> {
  /** Null: the key shall not expire. */
  readonly expiry?: Expiry;
}

/**
 * Updates an active key by an input that `checkUpdate` accepts. Absent fields stay unchanged. Throws `INVALID_ARGUMENT` if it changes an immutable
 * field.
 */
export async function updateKey(
  context: KeysContext,
  principal: Principal,
  name: KeyName & { kind: KeyKind },
  { expiry, ...input }: UpdateInput,
): Promise<ApiKey> {
  const now = context.clock.now();
  const update = {
    ...input,
    ...(expiry !== undefined && { expiry: newExpiryOf(expiry, context.lifetimes, now, name.kind) }),
  };
  const change = { verb: "update", ...withUniqueScopes(update, principal) } as const;
  const check: Check = (stored, time) => {
    const { key } = stored;
    if (update.scopes !== undefined) assertCanManage({ ...key, scopes: update.scopes }, principal);
    const rejected = rejectUnlessActive(stored, time);
    if (rejected !== null) return rejected;
    const { scopes = key.scopes, expiry } = update;
    assertExpiresWithin({ ...(expiry === undefined ? key : { expireTime: expiry.time }), scopes }, principal);
    return rejectImmutable(key, update) ?? rejectExpiry(key, update.expiry, time);
  };
  return changeKey(context, principal, name, change, check, now);
}

function newExpiryOf(expiry: Expiry, { maxKeyTtl }: Lifetimes, now: number, kind: KeyKind): NewExpiry {
  const time = timeOf(expiry, now);
  if (time !== null) requireBounded(time.getTime() - now, `${kind}_api_key.expire_time`);
  return { time, maxKeyTtl };
}

/** AIP-203: an immutable field may be sent again with its value. */
function rejectImmutable(key: ApiKey, { actorId, restrictedToActorIds }: KeyUpdate): KeyholdError | null {
  const isOther = (sent: unknown, stored: unknown) => sent !== undefined && !isDeepStrictEqual(sent, stored);
  const field = isOther(actorId, key.actorId)
    ? "actor_id"
    : isOther(restrictedToActorIds, key.restrictedToActorIds)
      ? "restricted_to_actor_ids"
      : null;
  const description = "is immutable, and the key has a different value";
  return field === null ? null : invalidArgument(`${key.kind}_api_key.${field}`, description, "IMMUTABLE_FIELD");
}

function rejectExpiry(key: ApiKey, expiry: NewExpiry | undefined, now: number): KeyholdError | null {
  if (expiry === undefined) return null;
  const { time, maxKeyTtl } = expiry;
  const [end, before] = [time, key.expireTime].map((date) => date?.getTime() ?? Number.POSITIVE_INFINITY);
  if (end === undefined || before === undefined || end === before) return null;
  const field = `${key.kind}_api_key.expire_time`;
  const rejected = attempt(() => requireFuture(end - now, field));
  if (rejected instanceof KeyholdError) return rejected;
  const isTooLong = maxKeyTtl !== null && end > before && end > key.createTime.getTime() + maxKeyTtl;
  return isTooLong ? tooLong(field) : null;
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

function withUniqueScopes(update: KeyUpdate, principal: Principal): KeyUpdate {
  if (update.scopes === undefined) return update;
  assertManageableScopes(update.scopes, principal);
  return { ...update, scopes: uniqueScopes(update.scopes) };
}
