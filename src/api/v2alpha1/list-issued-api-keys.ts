import type { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { listKeys } from "../../keys/list.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { issuedApiKey } from "./key-resources.ts";

export function listIssuedApiKeys({ keys }: ApiContext): Handler<typeof IssuedApiKeysService.method.listIssuedApiKeys> {
  return async (request, principal) => {
    const page = await listKeys(keys, principal, "issued", request);
    const now = keys.clock.now();
    return { issuedApiKeys: page.keys.map((key) => issuedApiKey(key, now)), nextPageToken: page.nextPageToken };
  };
}
