import {
  ImportedApiKeySchema,
  type ImportedApiKeysService,
  type UpdateImportedApiKeyRequest,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { deleteImportedKey } from "../../keys/delete.ts";
import { checkNewImport, importKey } from "../../keys/import.ts";
import { getKey, listKeys, pageSizeOf, readPageRequest } from "../../keys/read.ts";
import { updateKey } from "../../keys/update.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { batchCreateImportedApiKeys } from "./batch-create-imported-api-keys.ts";
import { importInput } from "./import-input.ts";
import { importedApiKey } from "./key-resources.ts";
import { readUpdate } from "./update-mask.ts";

export const importedApiKeys: ServiceRows<typeof ImportedApiKeysService> = {
  createImportedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) =>
        importedApiKey(await importKey(keys, principal, importInput(request)), keys.clock.now()),
    check: (request, { keys }) => checkNewImport(keys, importInput(request)),
    policy: "keyhold:keys.import",
    idempotency: "request_id",
    keyId: (_, { keyId }) => keyId,
  },
  // Logs its keys itself, because there may be many.
  batchCreateImportedApiKeys: {
    implement: batchCreateImportedApiKeys,
    policy: "keyhold:keys.import",
    idempotency: "request_id",
    maxRequestBytes: 4 * 2 ** 20,
    cost: ({ requests }) => costOfItems(requests.length),
  },
  getImportedApiKey: {
    implement:
      ({ keys }) =>
      async ({ keyId }, principal) =>
        importedApiKey(await getKey(keys, principal, "imported", keyId), keys.clock.now()),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    keyId: (_, { keyId }) => keyId,
  },
  listImportedApiKeys: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const page = await listKeys(keys, principal, "imported", request);
        const now = keys.clock.now();
        return { importedApiKeys: page.keys.map((key) => importedApiKey(key, now)), nextPageToken: page.nextPageToken };
      },
    check: (request, { keys }) => readPageRequest(keys, "imported", request),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  updateImportedApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const { name, update } = readUpdateImported(request);
        const key = await updateKey(keys, principal, name, update);
        return importedApiKey(key, keys.clock.now());
      },
    check: readUpdateImported,
    policy: "keyhold:keys.update",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  deleteImportedApiKey: {
    implement:
      ({ keys }) =>
      async ({ keyId }, principal) => {
        await deleteImportedKey(keys, principal, keyId);
        return {};
      },
    policy: "keyhold:keys.delete",
    idempotency: "idempotent",
    keyId: ({ keyId }) => keyId,
  },
};

function readUpdateImported({ importedApiKey, updateMask }: UpdateImportedApiKeyRequest) {
  return readUpdate("imported", ImportedApiKeySchema, importedApiKey, updateMask);
}
