import type { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { ApiContext, Handler } from "./handler.ts";
import { verification } from "./verification.ts";

export function verifyApiKey({ verify, issuer }: ApiContext): Handler<typeof ApiKeysService.method.verifyApiKey> {
  return async ({ credential }) => verification(await verify(credential), issuer);
}
