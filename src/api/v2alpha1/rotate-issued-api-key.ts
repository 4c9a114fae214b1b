import type { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { parseKeyId } from "../../domain/key-id.ts";
import { rotateKey } from "../../keys/rotate.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { issuedApiKey } from "./key-resources.ts";

export function rotateIssuedApiKey({
  keys,
}: ApiContext): Handler<typeof IssuedApiKeysService.method.rotateIssuedApiKey> {
  return async (request, principal) => {
    const keyId = parseKeyId(request.keyId, "key_id");
    const { key, secret } = await rotateKey(keys, principal, keyId, request.gracePeriod);
    return { secret, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
  };
}
