import type { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { andThen } from "../../lib/maybe-promise.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { factsOf } from "../log-fields.ts";
import { cacheModeOf } from "./cache-mode.ts";
import { verificationBy } from "./verification.ts";

export function verifyApiKey({ verify, issuer }: ApiContext): Handler<typeof ApiKeysService.method.verifyApiKey> {
  const verification = verificationBy(issuer);
  return ({ credential }, _principal, call) =>
    andThen(verify(credential, cacheModeOf(call)), (verdict) => {
      call.log.add(factsOf(verdict));
      return verification(verdict);
    });
}
