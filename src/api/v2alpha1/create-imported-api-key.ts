import type { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { importKey } from "../../keys/import.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { importedApiKey } from "./key-resources.ts";

export function createImportedApiKey({
  keys,
}: ApiContext): Handler<typeof ImportedApiKeysService.method.createImportedApiKey> {
  return async (request, principal) => importedApiKey(await importKey(keys, principal, request), keys.clock.now());
}
