import { fieldError } from "../domain/errors.ts";
import { type ApiKey, parseKeyId } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { assertGrantable, type Check, changeKey } from "./change.ts";
import type { KeysContext } from "./ports.ts";

export type QuotaAdjustment = ReturnType<typeof parseQuotaAdjustment>;

/** Parses an adjustment. Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseQuotaAdjustment({
  keyId,
  name,
  delta,
}: {
  readonly keyId: string;
  readonly name: string;
  readonly delta: number;
}) {
  return { keyId: parseKeyId(keyId, "key_id"), quota: name, delta };
}

/** Adds tokens to what is used of a quota of an active key, or subtracts them. Throws `QUOTA_NOT_FOUND` if it has none of this name. */
export function adjustQuota(
  context: KeysContext,
  principal: Principal,
  { keyId, quota, delta }: QuotaAdjustment,
): Promise<ApiKey> {
  const check: Check = (stored, time) => {
    if (!stored.key.quotas?.some(({ name }) => name === quota))
      throw fieldError("QUOTA_NOT_FOUND", "name", `key ${keyId} has no quota of this name`, { key_id: keyId });
    assertGrantable(principal)(stored, time);
  };
  return changeKey(context, principal, { keyId, kind: null }, { verb: "adjustQuota", quota, delta }, check);
}
