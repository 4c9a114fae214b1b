import type { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { KeyKind } from "../../domain/key.ts";
import { parseKeyId } from "../../domain/key-id.ts";
import { revokeKey } from "../../keys/revoke.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { revocationReason } from "./enums.ts";
import { revokedApiKey } from "./key-resources.ts";

/** Kinds of keys by the collection in the path. */
const KINDS: ReadonlyMap<string, KeyKind> = new Map([
  ["issuedApiKeys", "issued"],
  ["importedApiKeys", "imported"],
]);

export function revokeApiKey({ keys }: ApiContext): Handler<typeof ApiKeysService.method.revokeApiKey> {
  return async (request, principal) => {
    const name = { keyId: parseKeyId(request.keyId, "key_id"), kind: KINDS.get(request.collection) ?? null };
    const description = request.revocationDescription ?? null;
    const revocation = { reason: revocationReason(request.reason), description };
    return revokedApiKey(await revokeKey(keys, principal, name, revocation), keys.clock.now());
  };
}
