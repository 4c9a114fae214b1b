import { invalidArgument } from "../domain/errors.ts";
import type { ApiKey, RevocationReason } from "../domain/key.ts";
import { callDetails, type Principal, UNRESTRICTED } from "../domain/principal.ts";
import type { Valid, Verdict } from "../domain/verdict.ts";
import { changeKey } from "./change.ts";
import type { KeyName, KeysContext, Revocation } from "./ports.ts";
import { alreadyRevoked, credentialInvalid } from "./rejection.ts";

/** Revokes a key permanently. Throws `API_KEY_ALREADY_REVOKED` if it is revoked, and keeps the first reason and description. */
export function revokeKey(
  context: KeysContext,
  principal: Principal,
  name: KeyName,
  revocation: Revocation,
): Promise<ApiKey> {
  return changeKey(context, principal, name, { verb: "revoke", ...revocation }, ({ key }) => {
    if (key.revokeTime !== null) throw alreadyRevoked(key.keyId);
  });
}

/**
 * Revokes the key whose secret is the credential, with a reason that `checkOwnReason` accepts. Its holder needs no other permission;
 * `caller` may be anonymous.
 */
export async function selfRevoke(
  context: KeysContext,
  caller: Principal,
  verdict: Verdict,
  reason: RevocationReason,
): Promise<ApiKey> {
  const { scopes, key } = requireOwnSecret(verdict);
  const { keyId } = key;
  const identity = { subject: keyId, method: "secret", keyId, scopes, restrictions: UNRESTRICTED } as const;
  const holder: Principal = { ...identity, ...callDetails(caller) };
  return revokeKey(context, holder, { keyId, kind: null }, { reason, description: null });
}

/** Throws `INVALID_ARGUMENT` for a reason with which a key cannot revoke itself. */
export function checkOwnReason(reason: RevocationReason): void {
  if (reason !== "PRIVILEGE_WITHDRAWN") return;
  const description = "requires an administrator: a key cannot revoke itself with this reason";
  throw invalidArgument("reason", description, "VALUE_NOT_ALLOWED");
}

/** Accepts the secret of a disabled key and from any address: it may be a thief's, and a revocation takes only rights. */
function requireOwnSecret(verdict: Verdict): Valid {
  if (verdict.valid || verdict.credential !== undefined) {
    const credential = verdict.valid ? verdict : verdict.credential;
    if (credential?.token === null) return credential;
    const description = "is a derived token; send the secret of the key";
    throw invalidArgument("credential", description, "VALUE_NOT_ALLOWED");
  }
  if (verdict.reason !== "KEY_REVOKED" || verdict.keyId === null) throw credentialInvalid(verdict);
  throw alreadyRevoked(verdict.keyId);
}
