import type { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { deleteImportedKey } from "../../keys/delete.ts";
import type { ApiContext, Handler } from "../handler.ts";

export function deleteImportedApiKey({
  keys,
}: ApiContext): Handler<typeof ImportedApiKeysService.method.deleteImportedApiKey> {
  return async ({ keyId }, principal) => {
    await deleteImportedKey(keys, principal, keyId);
    return {};
  };
}
