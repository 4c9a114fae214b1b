import type { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { listKeys } from "../../keys/list.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { importedApiKey } from "./key-resources.ts";

export function listImportedApiKeys({
  keys,
}: ApiContext): Handler<typeof ImportedApiKeysService.method.listImportedApiKeys> {
  return async (request, principal) => {
    const page = await listKeys(keys, principal, "imported", request);
    const now = keys.clock.now();
    return { importedApiKeys: page.keys.map((key) => importedApiKey(key, now)), nextPageToken: page.nextPageToken };
  };
}
