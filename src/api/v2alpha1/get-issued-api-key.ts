import type { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { getKey } from "../../keys/get.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { issuedApiKey } from "./key-resources.ts";

export function getIssuedApiKey({ keys }: ApiContext): Handler<typeof IssuedApiKeysService.method.getIssuedApiKey> {
  return async ({ keyId }, principal) => issuedApiKey(await getKey(keys, principal, "issued", keyId), keys.clock.now());
}
