import {
  IssuedApiKeySchema,
  type IssuedApiKeysService,
  type UpdateIssuedApiKeyRequest,
} from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { checkNewIssue, issueKey } from "../../keys/issue.ts";
import { getKey, listKeys, pageSizeOf, readPageRequest } from "../../keys/read.ts";
import { readRotation, rotateKey } from "../../keys/rotate.ts";
import { updateKey } from "../../keys/update.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { issuedApiKey } from "./key-resources.ts";
import { readUpdate } from "./update-mask.ts";

export const issuedApiKeys: ServiceRows<typeof IssuedApiKeysService> = {
  createIssuedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const { key, secret } = await issueKey(keys, principal, request);
        return { secret: secret ?? undefined, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
      },
    check: (request, { keys }) => checkNewIssue(keys, request),
    policy: "keyhold:keys.issue",
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
    check: (request, { keys }) => readPageRequest(keys, "issued", request),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  updateIssuedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const { name, update } = readUpdateIssued(request);
        const key = await updateKey(keys, principal, name, update);
        return issuedApiKey(key, keys.clock.now());
      },
    check: readUpdateIssued,
    policy: "keyhold:keys.update",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  rotateIssuedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const { key, secret } = await rotateKey(keys, principal, request);
        return { secret, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
      },
    check: readRotation,
    policy: "keyhold:keys.rotate",
    idempotency: "none",
    keyId: (_, { issuedApiKey }) => issuedApiKey?.keyId,
  },
};

function readUpdateIssued({ issuedApiKey, updateMask }: UpdateIssuedApiKeyRequest) {
  return readUpdate("issued", IssuedApiKeySchema, issuedApiKey, updateMask);
}
