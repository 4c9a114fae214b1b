import { IssuedApiKeySchema, type IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { parseKeyId } from "../../domain/key.ts";
import { issueKey, parseNewIssue } from "../../keys/issue.ts";
import { endGracePeriod, parseRotation, rotateKey } from "../../keys/rotate.ts";
import { updateKey } from "../../keys/update.ts";
import type { ServiceRows } from "../row.ts";
import { issuedApiKey } from "./key-resources.ts";
import { limitInputs } from "./rate-limits.ts";
import { getRow, listRow } from "./reads.ts";
import { readUpdate } from "./update-mask.ts";

export const issuedApiKeys: ServiceRows<typeof IssuedApiKeysService> = {
  createIssuedApiKey: {
    implement:
      ({ keys }) =>
      (request) => {
        const input = parseNewIssue(keys, { ...request, ...limitInputs(request) });
        return async (principal) => {
          const { key, secret } = await issueKey(keys, principal, input);
          return { secret: secret ?? undefined, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
        };
      },
    policy: "keyhold:keys.issue",
    keyPage: "CREATE",
    idempotency: "request_id",
    keyId: (_, { issuedApiKey }) => issuedApiKey?.keyId,
  },
  getIssuedApiKey: getRow("issued", issuedApiKey),
  listIssuedApiKeys: listRow("issued", (keys, now) => ({ issuedApiKeys: keys.map((key) => issuedApiKey(key, now)) })),
  updateIssuedApiKey: {
    implement:
      ({ keys }) =>
      ({ issuedApiKey: resource, updateMask }) => {
        const { name, update } = readUpdate("issued", IssuedApiKeySchema, resource, updateMask);
        return async (principal) => issuedApiKey(await updateKey(keys, principal, name, update), keys.clock.now());
      },
    policy: "keyhold:keys.update",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  rotateIssuedApiKey: {
    implement:
      ({ keys }) =>
      (request) => {
        const rotation = parseRotation(request);
        return async (principal) => {
          const { key, secret } = await rotateKey(keys, principal, rotation);
          return { secret, issuedApiKey: issuedApiKey(key, keys.clock.now()) };
        };
      },
    policy: "keyhold:keys.rotate",
    keyPage: "ROTATE",
    idempotency: "none",
    keyId: (_, { issuedApiKey }) => issuedApiKey?.keyId,
  },
  endGracePeriod: {
    implement: ({ keys }) => {
      return (request) => {
        const keyId = parseKeyId(request.keyId, "key_id");
        return async (principal) => issuedApiKey(await endGracePeriod(keys, principal, keyId), keys.clock.now());
      };
    },
    policy: "keyhold:keys.rotate",
    keyPage: "ROTATE",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
};
