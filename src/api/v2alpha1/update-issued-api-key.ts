import { IssuedApiKeySchema, type IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { parseKeyId } from "../../domain/key-id.ts";
import { updateKey } from "../../keys/update.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { requireSet } from "../validation.ts";
import { issuedApiKey } from "./key-resources.ts";
import { maskedChanges } from "./update-mask.ts";

export function updateIssuedApiKey({
  keys,
}: ApiContext): Handler<typeof IssuedApiKeysService.method.updateIssuedApiKey> {
  return async (request, principal) => {
    const changed = requireSet(request.issuedApiKey, "issued_api_key");
    const keyId = parseKeyId(changed.keyId, "issued_api_key.key_id");
    const changes = maskedChanges(request.updateMask, IssuedApiKeySchema, changed);
    const key = await updateKey(keys, principal, { keyId, kind: "issued" }, changes);
    return issuedApiKey(key, keys.clock.now());
  };
}
