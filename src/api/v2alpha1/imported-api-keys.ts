import {
  ImportedApiKeySchema,
  type ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { deleteImportedKey } from "../../keys/delete.ts";
import { importKey, parseNewImport } from "../../keys/import.ts";
import { updateKey } from "../../keys/update.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { batchCreateImportedApiKeys } from "./batch-create-imported-api-keys.ts";
import { importInput } from "./import-input.ts";
import { importedApiKey } from "./key-resources.ts";
import { getRow, listRow } from "./reads.ts";
import { readUpdate } from "./update-mask.ts";

export const importedApiKeys: ServiceRows<typeof ImportedApiKeysService> = {
  createImportedApiKey: {
    implement:
      ({ keys }) =>
      (request) => {
        const input = parseNewImport(keys, importInput(request));
        return async (principal) => importedApiKey(await importKey(keys, principal, input), keys.clock.now());
      },
    policy: "keyhold:keys.import",
    idempotency: "request_id",
    imports: () => 1,
    keyId: (_, { keyId }) => keyId,
  },
  // Logs its keys itself, because there may be many.
  batchCreateImportedApiKeys: {
    implement: batchCreateImportedApiKeys,
    policy: "keyhold:keys.import",
    idempotency: "request_id",
    maxRequestBytes: 4 * 2 ** 20,
    imports: ({ requests }) => requests.length,
    cost: ({ requests }) => costOfItems(requests.length),
  },
  getImportedApiKey: getRow("imported", importedApiKey),
  listImportedApiKeys: listRow("imported", (keys, now) => ({
    importedApiKeys: keys.map((key) => importedApiKey(key, now)),
  })),
  updateImportedApiKey: {
    implement:
      ({ keys }) =>
      ({ importedApiKey: resource, updateMask }) => {
        const { name, update } = readUpdate("imported", ImportedApiKeySchema, resource, updateMask);
        return async (principal) => importedApiKey(await updateKey(keys, principal, name, update), keys.clock.now());
      },
    policy: "keyhold:keys.update",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  deleteImportedApiKey: {
    implement:
      ({ keys }) =>
      ({ keyId }) =>
      async (principal) => {
        await deleteImportedKey(keys, principal, keyId);
        return {};
      },
    policy: "keyhold:keys.delete",
    idempotency: "idempotent",
    keyId: ({ keyId }) => keyId,
  },
};
