import type { SelfServiceService } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { selfRevoke } from "../../keys/self-revoke.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { revocationReason } from "./enums.ts";
import { revokedApiKey } from "./key-resources.ts";

export function selfRevokeApiKey({
  keys,
  verifyStrictly,
}: ApiContext): Handler<typeof SelfServiceService.method.selfRevokeApiKey> {
  return async ({ credential, reason }, principal) => {
    const key = await selfRevoke(keys, principal, await verifyStrictly(credential), revocationReason(reason));
    return { ...revokedApiKey(key, keys.clock.now()), $typeName: undefined };
  };
}
