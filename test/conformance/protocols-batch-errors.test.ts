import { expect, test } from "vitest";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { draft, imported, newRawKey } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { compareProtocols, scenario } from "../support/protocols/scenario.ts";

const suite = useProtocols();

const { batchCreateImportedApiKeys: batchCreate } = ImportedApiKeysService.method;

const exists = {
  error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS",
  error_message: "raw_key: is already imported",
  warnings: [],
};
const reused = {
  ...exists,
  error_message: "request_id: was already used for a request with different parameters",
};
const invalid = {
  error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_INVALID_ARGUMENT",
  error_message: "raw_key: is required without raw_key_hash",
  warnings: [],
};

/** Items with `invalid` that fit into 4 KiB, which is 5.5 KiB of a trailer in base64. */
const FITTING = 71;

function allFailed(code: string, reason: string, results: readonly object[]) {
  return {
    code,
    message: `none of the ${results.length} keys was imported; see \`details\` for the errors of each`,
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
    "agree in their status only",
    async (call) => {
      const [{ rawKey }, requestId] = [await imported(call), newRawKey()];
      await imported(call, { requestId });
      return call(batchCreate, {
        requests: [
          { ...draft(), rawKey },
          { ...draft(), rawKey: newRawKey(), requestId },
        ],
      });
    },
    allFailed("ALREADY_EXISTS", "RAW_KEY_ALREADY_EXISTS", [exists, reused]),
  ),
  scenario(
    batchCreate,
    "are as many as fit into the trailers of gRPC",
    (call) => call(batchCreate, { requests: Array.from({ length: FITTING }, () => draft()) }),
    allFailed("INVALID_ARGUMENT", "INVALID_ARGUMENT", Array(FITTING).fill(invalid)),
  ),
])("a batch that failed as a whole returns the reasons of its items when they $title", (batch) =>
  compareProtocols(suite.protocols, batch, 5),
);

test("a thousand failed items are described, in gRPC as many as clients accept in trailers", async () => {
  const requests = Array.from({ length: 1000 }, () => draft());
  for (const { name, call } of suite.protocols) {
    const inBody = !/^gRPC(?!-Web)/.test(name);
    const described = inBody ? 1000 : FITTING;
    const which = inBody ? "each" : `the first ${FITTING}`;
    expect(await call(batchCreate, { requests }), name).toMatchObject({
      code: "INVALID_ARGUMENT",
      message: `none of the 1000 keys was imported; see \`details\` for the errors of ${which}`,
      details: {
        "keyhold.v2alpha1.BatchCreateImportedApiKeysResponse": {
          results: Array.from({ length: described }, (_, index) => ({ index, ...invalid })),
          failure_count: 1000,
        },
      },
    });
  }
});

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
