import { invalidArgument, KeyholdError } from "../domain/errors.ts";
import type { ApiKey, RevocationReason } from "../domain/key.ts";
import type { Verdict } from "../domain/verdict.ts";
import { fullAuthority } from "./authority.ts";
import type { KeysContext } from "./context.ts";
import { credentialInvalid } from "./credential-invalid.ts";
import { revokeKey } from "./revoke.ts";

/** Revokes the key that a credential is the secret of: whoever holds it may end it, and needs no other right. */
export async function selfRevoke(context: KeysContext, verdict: Verdict, reason: RevocationReason): Promise<ApiKey> {
  if (reason === "REVOCATION_REASON_PRIVILEGE_WITHDRAWN") {
    throw invalidArgument("reason", "is for administrators: a key cannot withdraw its own privilege");
  }
  return revokeKey(context, { keyId: ownKey(verdict), kind: null }, { reason, description: null }, fullAuthority);
}

function ownKey(verdict: Verdict): string {
  if (verdict.valid) {
    if (verdict.token !== null)
      throw invalidArgument("credential", "is a derived token; only the secret of a key revokes it");
    return verdict.key.keyId;
  }
  if (verdict.reason !== "KEY_REVOKED" || verdict.keyId === null) throw credentialInvalid(verdict);
  throw new KeyholdError("API_KEY_ALREADY_REVOKED", `key ${verdict.keyId} is revoked already`, {
    metadata: { key_id: verdict.keyId },
  });
}
