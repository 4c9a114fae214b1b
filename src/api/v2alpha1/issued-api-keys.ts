import { IssuedApiKeySchema, type IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { parseKeyId } from "../../domain/key.ts";
import { issueKey } from "../../keys/issue.ts";
import { getKey, listKeys, pageSizeOf } from "../../keys/read.ts";
import { rotateKey } from "../../keys/rotate.ts";
import { updateKey } from "../../keys/update.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { requireSet } from "../validation.ts";
import { issuedApiKey } from "./key-resources.ts";
import { maskedChanges } from "./update-mask.ts";

export const issuedApiKeys: ServiceRows<typeof IssuedApiKeysService> = {
  createIssuedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const { key, secret } = await issueKey(keys, principal, request);
        return { secret: secret ?? undefined, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
      },
    policy: "keyhold:keys.write",
    idempotency: "request_id",
    keyId: (_, { issuedApiKey }) => issuedApiKey?.keyId,
  },
  getIssuedApiKey: {
    implement:
      ({ keys }) =>
      async ({ keyId }, principal) =>
        issuedApiKey(await getKey(keys, principal, "issued", keyId), keys.clock.now()),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    keyId: (_, { keyId }) => keyId,
  },
  listIssuedApiKeys: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const page = await listKeys(keys, principal, "issued", request);
        const now = keys.clock.now();
        return { issuedApiKeys: page.keys.map((key) => issuedApiKey(key, now)), nextPageToken: page.nextPageToken };
      },
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  updateIssuedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const changed = requireSet(request.issuedApiKey, "issued_api_key");
        const keyId = parseKeyId(changed.keyId, "issued_api_key.key_id");
        const changes = maskedChanges(request.updateMask, IssuedApiKeySchema, changed);
        const key = await updateKey(keys, principal, { keyId, kind: "issued" }, changes);
        return issuedApiKey(key, keys.clock.now());
      },
    policy: "keyhold:keys.write",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  rotateIssuedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const keyId = parseKeyId(request.keyId, "key_id");
        const { key, secret } = await rotateKey(keys, principal, keyId, request.gracePeriod);
        return { secret, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
      },
    policy: "keyhold:keys.write",
    idempotency: "none",
    keyId: (_, { issuedApiKey }) => issuedApiKey?.keyId,
  },
};
