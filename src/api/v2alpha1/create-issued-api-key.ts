import type { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { issueKey } from "../../keys/issue.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { issuedApiKey } from "./key-resources.ts";

export function createIssuedApiKey({
  keys,
}: ApiContext): Handler<typeof IssuedApiKeysService.method.createIssuedApiKey> {
  return async (request, principal) => {
    const { key, secret } = await issueKey(keys, principal, request);
    return { secret: secret ?? undefined, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
  };
}
