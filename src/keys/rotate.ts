import { GRACE_PERIOD_BOUNDS, parseDuration } from "../domain/duration.ts";
import { checkAll } from "../domain/errors.ts";
import { type ApiKey, parseKeyId, type StoredKey } from "../domain/key.ts";
import { MAX_GRACE_SECRETS } from "../domain/limits.ts";
import type { Principal } from "../domain/principal.ts";
import type { Random } from "../lib/random.ts";
import { assertActive, assertGrantable, type Check, changeKey } from "./change.ts";
import { newSecret } from "./issue.ts";
import type { KeysContext } from "./ports.ts";
import { keyError } from "./rejection.ts";

/** Parses a rotation; without a grace period the old secret becomes invalid at once. Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseRotation(request: { readonly keyId: string; readonly gracePeriod?: string | undefined }) {
  const { gracePeriod } = request;
  const [keyId, grace] = checkAll(
    () => parseKeyId(request.keyId, "key_id"),
    () => (gracePeriod === undefined ? null : parseDuration(gracePeriod, "grace_period", GRACE_PERIOD_BOUNDS)),
  );
  return { keyId, grace };
}

/** Replaces the secret of an active key. Without a grace period all older secrets become invalid. */
export async function rotateKey(
  context: KeysContext,
  principal: Principal,
  { keyId, grace }: ReturnType<typeof parseRotation>,
) {
  const now = context.clock.now();
  const { secret, digest, hint } = newSecret(context, keyId);
  const graceEnd = grace === null ? null : new Date(now + grace);
  const rotation = { verb: "rotate", version: newVersion(context.random), digest, hint, graceEnd } as const;
  const check: Check = (stored, time) => {
    assertGrantable(principal)(stored, time);
    if (graceEnd !== null) assertGraceRoom(stored, now);
  };
  return { key: await changeKey(context, principal, { keyId, kind: "issued" }, rotation, check, now), secret };
}

/** Ends the grace periods of an active key: all secrets but the current one become invalid. */
export function endGracePeriod(context: KeysContext, principal: Principal, keyId: string): Promise<ApiKey> {
  return changeKey(context, principal, { keyId, kind: "issued" }, { verb: "endGrace" }, assertActive);
}

/**
 * Returns a random version. The next number would be the version of another secret if the database had lost a rotation, as after a restore:
 * tokens that were derived from that secret would become valid.
 */
function newVersion(random: Random): number {
  return Buffer.from(random.bytes(4)).readUInt32BE() >>> 2;
}

function assertGraceRoom({ key: { keyId }, secrets }: StoredKey, now: number): void {
  const inGrace = secrets.filter(({ expireTime }) => expireTime !== null && expireTime.getTime() > now);
  if (inGrace.length < MAX_GRACE_SECRETS) return;
  throw keyError(
    "TOO_MANY_VALID_SECRETS",
    keyId,
    `key ${keyId} has ${MAX_GRACE_SECRETS} older secrets in their grace period; wait for a grace period to end, or rotate without a grace period`,
  );
}
