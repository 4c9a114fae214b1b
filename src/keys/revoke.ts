import { invalidArgument } from "../errors.ts";
import type { ApiKey } from "../record/key.ts";
import type { Authority } from "./authority.ts";
import type { KeysContext } from "./context.ts";
import { explainRefusal, refuseIfRevoked } from "./explain.ts";
import type { KeyName, Revocation } from "./store.ts";
import { changedMeanwhile } from "./update.ts";

/** Revokes a key for good. A description goes with the reason PRIVILEGE_WITHDRAWN alone (contract §3). */
export async function revokeKey(
  { store, clock }: KeysContext,
  name: KeyName,
  revocation: Revocation,
  authority: Authority,
): Promise<ApiKey> {
  if (revocation.description !== null && revocation.reason !== "REVOCATION_REASON_PRIVILEGE_WITHDRAWN") {
    throw invalidArgument("revocation_description", "goes with REVOCATION_REASON_PRIVILEGE_WITHDRAWN only");
  }
  const now = clock.now();
  const revoked = await store.revoke(name, revocation, authority, new Date(now));
  if (revoked !== null) return revoked;
  throw await explainRefusal(store, name, authority, now, refuseIfRevoked, changedMeanwhile);
}
