import type { JsonObject } from "@bufbuild/protobuf";
import type { Examples } from "./example.ts";
import { CREATED, errorBody, HMAC_KEY, SAMPLES } from "./samples.ts";

const { hmacKeyId, newHmacKeyId, unknownHmacKeyId } = SAMPLES;

const hmacKey = (hmac_key_id: string): JsonObject => ({
  ...{ hmac_key_id, create_time: CREATED, created_by: "none:anonymous", not_adopted_count: 0 },
});

export const hmacKeyExamples: Readonly<Record<string, Examples>> = {
  HmacKeysService_CreateHmacKey: {
    create: {
      summary: "The key of another system",
      body: { ...HMAC_KEY, hmac_key_id: newHmacKeyId },
      status: 200,
      response: hmacKey(newHmacKeyId),
    },
    other: {
      summary: "The id of another key",
      body: { ...HMAC_KEY, key: "YW5vdGhlciBrZXkgb2YgSE1BQ3M" },
      status: 409,
      response: errorBody(
        409,
        "ALREADY_EXISTS",
        "HMAC_KEY_ALREADY_EXISTS",
        "hmac_key_id: is already the id of another HMAC key; choose another id, or delete that key first",
        { field: "hmac_key_id" },
      ),
    },
  },
  HmacKeysService_ListHmacKeys: {
    list: { summary: "All keys", status: 200, response: { hmac_keys: [hmacKey(hmacKeyId)] } },
  },
  HmacKeysService_DeleteHmacKey: {
    delete: { summary: "A key", parameters: { hmac_key_id: hmacKeyId }, status: 200, response: {} },
    unknown: {
      summary: "The key does not exist",
      parameters: { hmac_key_id: unknownHmacKeyId },
      status: 404,
      response: errorBody(404, "NOT_FOUND", "HMAC_KEY_NOT_FOUND", "no such HMAC key"),
    },
  },
};
