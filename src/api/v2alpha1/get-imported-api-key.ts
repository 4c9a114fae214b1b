import type { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { getKey } from "../../keys/get.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { importedApiKey } from "./key-resources.ts";

export function getImportedApiKey({
  keys,
}: ApiContext): Handler<typeof ImportedApiKeysService.method.getImportedApiKey> {
  return async ({ keyId }, principal) =>
    importedApiKey(await getKey(keys, principal, "imported", keyId), keys.clock.now());
}
