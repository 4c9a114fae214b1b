import { GRACE_PERIOD_BOUNDS, parseDuration } from "../domain/duration.ts";
import { checkAll, type KeyholdError } from "../domain/errors.ts";
import { type ApiKey, parseKeyId, type StoredKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { Random } from "../lib/random.ts";
import { type Check, changeKey, rejectUnlessGrantable } from "./change.ts";
import { newSecret } from "./issue.ts";
import type { KeyName, KeysContext } from "./ports.ts";
import { keyError } from "./rejection.ts";

/** Maximum older secrets in their grace period per key: bounds the row and the work of a verification. */
const MAX_GRACE_SECRETS = 16;

export interface Rotated {
  readonly key: ApiKey;
  readonly secret: string;
}

export interface RotationRequest {
  readonly keyId: string;
  /** A duration; undefined if the old secret becomes invalid at once. */
  readonly gracePeriod?: string | undefined;
}

export interface ParsedRotation {
  readonly keyId: string;
  /** Milliseconds; null if the old secret becomes invalid at once. */
  readonly grace: number | null;
}

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseRotation({ keyId: text, gracePeriod }: RotationRequest): ParsedRotation {
  const [keyId, grace] = checkAll(
    () => parseKeyId(text, "key_id"),
    () => (gracePeriod === undefined ? null : parseDuration(gracePeriod, "grace_period", GRACE_PERIOD_BOUNDS)),
  );
  return { keyId, grace };
}

/** Replaces the secret of an active key. Without a grace period all older secrets become invalid. */
export async function rotateKey(
  context: KeysContext,
  principal: Principal,
  { keyId, grace }: ParsedRotation,
): Promise<Rotated> {
  const now = context.clock.now();
  const { secret, digest, hint } = newSecret(context, keyId);
  const graceEnd = grace === null ? null : new Date(now + grace);
  const rotation = { version: newVersion(context.random), digest, hint, graceEnd, maxGraceSecrets: MAX_GRACE_SECRETS };
  const rejectUnlessRoom: Check = (stored) =>
    graceEnd !== null && graceSecrets(stored, now) >= MAX_GRACE_SECRETS ? tooManySecrets(stored.key) : null;
  const check: Check = (stored, time) =>
    rejectUnlessGrantable(principal)(stored, time) ?? rejectUnlessRoom(stored, time);
  const name: KeyName = { keyId, kind: "issued" };
  return { key: await changeKey(context, principal, name, { verb: "rotate", ...rotation }, check, now), secret };
}

/**
 * Returns a random version. The next number would be the version of another secret if the database had lost a rotation, as after a restore:
 * tokens that were derived from that secret would become valid.
 */
function newVersion(random: Random): number {
  const bytes = random.bytes(4);
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0) >>> 2;
}

/** Counts the older secrets that are in their grace period. */
function graceSecrets(stored: StoredKey, now: number): number {
  return stored.secrets.filter(({ expireTime }) => expireTime !== null && expireTime.getTime() > now).length;
}

function tooManySecrets({ keyId }: ApiKey): KeyholdError {
  return keyError(
    "TOO_MANY_VALID_SECRETS",
    keyId,
    `key ${keyId} has ${MAX_GRACE_SECRETS} older secrets in their grace period; wait for a grace period to end, or rotate without a grace period`,
  );
}
