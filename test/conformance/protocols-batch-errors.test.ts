import { expect, test } from "vitest";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { draft, imported, newRawKey } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { compareProtocols, scenario } from "../support/protocols/scenario.ts";

const suite = useProtocols();

const { batchCreateImportedApiKeys: batchCreate } = ImportedApiKeysService.method;

const exists = {
  error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS",
  error_message: "raw_key: is imported already",
};
const invalid = {
  error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_INVALID_ARGUMENT",
  error_message: "raw_key: value is required",
};

function allFailed(code: string, reason: string, results: readonly object[]) {
  return {
    code,
    message: `none of the ${results.length} keys was imported; the details say why of each`,
    details: {
      "google.rpc.ErrorInfo": { reason, domain: "keyhold", metadata: {} },
      "keyhold.v2alpha1.BatchCreateImportedApiKeysResponse": {
        results: results.map((result, index) => ({ index, ...result })),
        success_count: 0,
        failure_count: results.length,
      },
    },
    headers: {},
  };
}

test.for([
  scenario(
    batchCreate,
    "agree",
    async (call) => {
      const { rawKey } = await imported(call);
      return call(batchCreate, { requests: [1, 2].map(() => ({ ...draft(), rawKey })) });
    },
    allFailed("ALREADY_EXISTS", "RAW_KEY_ALREADY_EXISTS", [exists, exists]),
  ),
  scenario(
    batchCreate,
    "differ",
    async (call) => {
      const { rawKey } = await imported(call);
      return call(batchCreate, { requests: [{ ...draft(), rawKey }, draft()] });
    },
    allFailed("INVALID_ARGUMENT", "INVALID_ARGUMENT", [exists, invalid]),
  ),
  scenario(
    batchCreate,
    "are a thousand",
    (call) => call(batchCreate, { requests: Array.from({ length: 1000 }, () => draft()) }),
    allFailed("INVALID_ARGUMENT", "INVALID_ARGUMENT", Array(1000).fill(invalid)),
  ),
])("a batch that failed as a whole returns the reasons of its items when they $title", (batch) =>
  compareProtocols(suite.protocols, batch, 5),
);

test.for([0, 1001])("a batch of %d items is refused as a whole, and nothing is imported", async (count) => {
  const rawKeys = Array.from({ length: count }, newRawKey);
  const refused = {
    code: "INVALID_ARGUMENT",
    message: expect.stringMatching(/^requests: /),
    details: {
      "google.rpc.ErrorInfo": { reason: "INVALID_ARGUMENT", domain: "keyhold", metadata: {} },
      "google.rpc.BadRequest": { field_violations: [expect.objectContaining({ field: "requests" })] },
    },
    headers: {},
  };
  const requests = rawKeys.map((rawKey) => ({ ...draft(), rawKey }));
  const batch = scenario(batchCreate, "", (call) => call(batchCreate, { requests }), refused);
  const [before] = await suite.sql`SELECT count(*) FROM api_keys`;
  await compareProtocols(suite.protocols, batch);
  const [after] = await suite.sql`SELECT count(*) FROM api_keys`;
  expect(after).toEqual(before);
});
