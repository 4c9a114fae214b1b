import {
  ImportedApiKeySchema,
  type ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { parseKeyId } from "../../domain/key-id.ts";
import { updateKey } from "../../keys/update.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { requireSet } from "../validation.ts";
import { importedApiKey } from "./key-resources.ts";
import { maskedChanges } from "./update-mask.ts";

export function updateImportedApiKey({
  keys,
}: ApiContext): Handler<typeof ImportedApiKeysService.method.updateImportedApiKey> {
  return async (request, principal) => {
    const changed = requireSet(request.importedApiKey, "imported_api_key");
    const keyId = parseKeyId(changed.keyId, "imported_api_key.key_id");
    const changes = maskedChanges(request.updateMask, ImportedApiKeySchema, changed);
    const key = await updateKey(keys, principal, { keyId, kind: "imported" }, changes);
    return importedApiKey(key, keys.clock.now());
  };
}
