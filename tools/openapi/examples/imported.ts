import type { JsonObject } from "@bufbuild/protobuf";
import type { Examples } from "./example.ts";
import { errorBody, importedKey, invalidArgument, keyNotFound, SAMPLES, unknownKey } from "./samples.ts";

const { importedKeyId, unknownKeyId, rawKey, newRawKey, newSha256 } = SAMPLES;
const UPDATED = "2026-11-22T10:00:00.456Z";
const NEW: JsonObject = { raw_key: newRawKey, name: "old portal", actor_id: "team_42", scopes: ["read"] };
const HASHED: JsonObject = { name: "old portal", actor_id: "team_42", scopes: ["read"] };
const algorithm = "HASH_ALGORITHM_SHA256";
const KNOWN: JsonObject = { ...NEW, raw_key: rawKey };

const alreadyExists = (message: string, details: readonly JsonObject[], field?: string) =>
  errorBody(409, "ALREADY_EXISTS", "RAW_KEY_ALREADY_EXISTS", message, { details, ...(field && { field }) });

const failed = (index: number) => ({
  index,
  error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS",
  error_message: "raw_key: is already imported",
  warnings: [],
});

const NONE_IMPORTED: JsonObject = {
  "@type": "type.googleapis.com/keyhold.v2alpha1.BatchCreateImportedApiKeysResponse",
  results: [failed(0)],
  success_count: 0,
  failure_count: 1,
};

export const importedExamples: Readonly<Record<string, Examples>> = {
  ImportedApiKeysService_CreateImportedApiKey: {
    import: { summary: "A key that was generated elsewhere", body: NEW, status: 200, response: importedKey() },
    hash: {
      summary: "A key of which only the SHA-256 is known",
      body: { ...HASHED, raw_key_hash: { algorithm, value: newSha256, encoding: "TEXT_ENCODING_HEX" } },
      status: 200,
      response: importedKey({ hint: "", hash_algorithm: algorithm }),
    },
    guessed: {
      summary: "A hash without its encoding",
      body: { ...HASHED, raw_key_hash: { algorithm, value: newSha256 } },
      status: 400,
      response: invalidArgument(
        "raw_key_hash.encoding",
        "is required with value: TEXT_ENCODING_HEX, TEXT_ENCODING_BASE64 or TEXT_ENCODING_BASE64URL",
        "FIELD_REQUIRED",
      ),
    },
    known: {
      summary: "The raw key has already been imported",
      body: KNOWN,
      status: 409,
      response: alreadyExists("raw_key: is already imported", [], "raw_key"),
    },
  },
  ImportedApiKeysService_BatchCreateImportedApiKeys: {
    some: {
      summary: "One of two keys has already been imported",
      body: { requests: [NEW, KNOWN] },
      status: 200,
      response: {
        results: [{ index: 0, imported_api_key: importedKey(), warnings: [] }, failed(1)],
        success_count: 1,
        failure_count: 1,
      },
    },
    none: {
      summary: "No key is imported",
      body: { requests: [KNOWN] },
      status: 409,
      response: alreadyExists("none of the 1 keys was imported; see `details` for the errors of each", [NONE_IMPORTED]),
    },
    empty: {
      summary: "An empty batch",
      body: { requests: [] },
      status: 400,
      response: invalidArgument("requests", "must have at least 1 item", "TOO_FEW_ITEMS"),
    },
  },
  ImportedApiKeysService_GetImportedApiKey: {
    get: { summary: "A key", parameters: { key_id: importedKeyId }, status: 200, response: importedKey() },
    unknown: unknownKey("imported key"),
  },
  ImportedApiKeysService_ListImportedApiKeys: {
    list: {
      summary: "The keys of an actor",
      parameters: { page_size: 1, filter: 'actor_id="team_42"' },
      status: 200,
      response: { imported_api_keys: [importedKey()], next_page_token: "AZkfOw0uepCPE15tfIubAQ" },
    },
    negative: {
      summary: "An invalid page size",
      parameters: { page_size: -1 },
      status: 400,
      response: invalidArgument("page_size", "must be at least 0", "OUT_OF_RANGE"),
    },
  },
  ImportedApiKeysService_UpdateImportedApiKey: {
    update: {
      summary: "A new name",
      parameters: { key_id: importedKeyId, update_mask: "name" },
      body: { name: "new portal" },
      status: 200,
      response: importedKey({ name: "new portal", update_time: UPDATED }),
    },
    unknown: {
      summary: "The key does not exist",
      parameters: { key_id: unknownKeyId, update_mask: "name" },
      body: { name: "new portal" },
      status: 404,
      response: keyNotFound("imported key"),
    },
  },
  ImportedApiKeysService_DeleteImportedApiKey: {
    delete: { summary: "A key", parameters: { key_id: importedKeyId }, status: 200, response: {} },
    unknown: unknownKey("imported key"),
  },
};
