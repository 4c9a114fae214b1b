import { digestCurrent } from "../credential/digest.ts";
import { issuedSecretHint } from "../credential/hint.ts";
import { issueSecret } from "../credential/issued-secret.ts";
import { RESERVED_SCOPE_PREFIX } from "../domain/admin-scopes.ts";
import { checkAll, invalidArgument, KeyholdError } from "../domain/errors.ts";
import { newId, type SecretDigest } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { assertCanGrant, isReserved } from "./authorization.ts";
import {
  identify,
  type NewKeyInput,
  NO_SOURCE,
  newStoredKey,
  type ParsedNewKey,
  parseNewKey,
  requireRepeat,
} from "./new-key.ts";
import type { KeysContext } from "./ports.ts";

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseNewIssue(context: Pick<KeysContext, "clock" | "lifetimes">, input: NewKeyInput): ParsedNewKey {
  const [parsed] = checkAll(
    () => parseNewKey(context, input),
    () => checkRestriction(input),
  );
  return parsed;
}

/** Rejects a restriction without effect: whoever asks for it expects that it restricts the key. */
function checkRestriction({ scopes, restrictedToActorIds = [] }: NewKeyInput): void {
  if (restrictedToActorIds.length === 0 || scopes.some(isReserved)) return;
  const description = `is only for keys with a scope that begins with "${RESERVED_SCOPE_PREFIX}"; it restricts which calls to Keyhold the key can make`;
  throw invalidArgument("restricted_to_actor_ids", description, "VALUE_NOT_ALLOWED");
}

/**
 * Issues a key. The secret is null if the request repeats an earlier one, which returned it. Throws on scopes that the principal may not
 * grant, and on a reused request id.
 */
export async function issueKey(context: KeysContext, principal: Principal, input: ParsedNewKey) {
  const now = context.clock.now();
  const keyId = newId(now, context.random);
  const { secret, digest, hint } = newSecret(context, keyId);
  const key = newStoredKey({ kind: "issued", keyId, hint }, input, principal, now);
  const request = identify(input, NO_SOURCE, context.rings.fingerprint);
  const [insertion] = await context.store.insert([{ key, digest, otherDigests: [], request, principal }]);
  if (insertion?.outcome === "inserted") return { key: insertion.key, secret };
  if (insertion?.outcome !== "repeated") throw new KeyholdError("INTERNAL", "a new key was not stored");
  requireRepeat(input, NO_SOURCE, insertion.fingerprint, context.rings.fingerprint);
  assertCanGrant(insertion.key, principal);
  return { key: insertion.key, secret: null };
}

/** Returns a new secret of a key with its digest and hint. */
export function newSecret(context: KeysContext, keyId: string): { secret: string; digest: SecretDigest; hint: string } {
  const { secretPrefix: prefix, random, rings } = context;
  const secret = issueSecret({ prefix, keyId, random, tagKeys: rings.tag });
  return { secret, digest: digestCurrent(secret, rings.digest), hint: issuedSecretHint(prefix, secret) };
}
