import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ApiKey as WireKey } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { AuthMethod, type WhoAmIResponse } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import type { Principal } from "../../src/domain/principal.ts";
import { assertCanManage, assertExpiresWithin } from "../../src/keys/authorization.ts";
import { useCaller } from "./permissions.ts";

/**
 * Returns what the caller may do with a key, by the rules that the server applies: whether it may revoke, disable or delete it, and whether it may
 * change, rotate or enable it.
 */
export function useKeyPermissions({ scopes, restrictedToActorIds, expireTime }: WireKey) {
  const principal = principalOf(useCaller());
  const key = {
    scopes,
    restrictedToActorIds: restrictedToActorIds.length === 0 ? null : restrictedToActorIds,
    expireTime: expireTime === undefined ? null : timestampDate(expireTime),
  };
  const canManage = holds(() => assertCanManage(key, principal));
  return { canManage, canGrant: canManage && holds(() => assertExpiresWithin(key, principal)) };
}

function holds(assert: () => void): boolean {
  try {
    assert();
    return true;
  } catch {
    return false;
  }
}

/** What only a server knows of a caller has no part in these rules. */
function principalOf({
  subject,
  authMethod,
  scopes,
  actorRestricted,
  restrictedToActorIds,
  expireTime,
}: WhoAmIResponse): Principal {
  return {
    subject,
    method: authMethod === AuthMethod.OIDC ? "oidc" : authMethod === AuthMethod.NONE ? "none" : "admin-token",
    scopes,
    restrictions: { actorIds: actorRestricted ? restrictedToActorIds : null },
    ...(expireTime !== undefined && { expireTime: timestampDate(expireTime) }),
    ...{ rpc: "", peerAddress: "", clientAddress: "", userAgent: "", callId: "" },
  };
}
