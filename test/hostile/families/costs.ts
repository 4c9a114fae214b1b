import { brotliCompressSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  BatchCreateImportedApiKeysRequestSchema,
  ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { paths } from "../../support/rest.ts";
import { rpcPath } from "../../support/wire.ts";
import type { Family } from "../case.ts";

const BATCH = `${paths.imported}:batchCreate`;
const BATCH_RPC = rpcPath(ImportedApiKeysService.method.batchCreateImportedApiKeys);
const JSON_TYPE = { "content-type": "application/json" };

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const members = (count: number, value = "1") => times(count, (i) => `"k${i}":${value}`).join(",");

interface CostlyRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: () => string | Uint8Array;
}

/** A valid item of about 15 KiB, of a batch with this number. */
function largeItem(batch: number, index: number) {
  return {
    raw_key: `costly-${batch}-${index}-`.padEnd(4096, "x"),
    name: "n".repeat(255),
    actor_id: "a".repeat(255),
    scopes: times(40, (i) => `scope-${i}-`.padEnd(200, "y")),
    metadata: Object.fromEntries(times(60, (i) => [`m${i}`, "v".repeat(40)])),
  };
}

function json(path: string, body: () => string): CostlyRequest {
  return { path, headers: JSON_TYPE, body };
}

/** Requests that are as large, or hold as much, as their RPCs allow, or more. */
const REQUESTS: Readonly<Record<string, CostlyRequest>> = {
  "95,000 unknown members": json(paths.issued, () => `{${members(95_000)}}`),
  "240,000 unknown members": json(BATCH, () => `{${members(240_000)}}`),
  "240,000 unknown members over Connect": json(BATCH_RPC, () => `{${members(240_000)}}`),
  "95,000 unknown members with Brotli": {
    path: rpcPath(IssuedApiKeysService.method.createIssuedApiKey),
    headers: { ...JSON_TYPE, "content-encoding": "br" },
    body: () => brotliCompressSync(`{${members(95_000)}}`),
  },
  "240,000 metadata entries": json(BATCH, () => `{"requests":[{"metadata":{${members(240_000, '"v"')}}}]}`),
  "100,000 claims": json(`${paths.keys}:derive`, () => `{"custom_claims":{${members(100_000)}}}`),
  "15 MB where a pattern is": json(BATCH, () => `{"requests":[{"scopes":["${"é".repeat(7_500_000)}"]}]}`),
  "100,000 bad scopes": json(BATCH, () =>
    JSON.stringify({ requests: times(1000, () => ({ scopes: Array(100).fill("é") })) }),
  ),
  "1,000 names that are too long": json(BATCH, () =>
    JSON.stringify({ requests: times(1000, () => ({ name: "n".repeat(15_000) })) }),
  ),
  "15 MB of white space": json(BATCH, () => `{"requests":[${" ".repeat(15_000_000)}]}`),
  "120,000 empty items": {
    path: BATCH_RPC,
    headers: { "content-type": "application/proto" },
    body: () => {
      const requests = times(120_000, () => ({}));
      return toBinary(
        BatchCreateImportedApiKeysRequestSchema,
        create(BatchCreateImportedApiKeysRequestSchema, { requests }),
      );
    },
  },
  "the largest valid batch": json(BATCH, () => {
    const batch = process.hrtime.bigint();
    return JSON.stringify({ requests: times(1000, (i) => largeItem(Number(batch), i)) });
  }),
};

/** Requests that cost as much as one can: none may hold the event loop. */
export const costs: Family = {
  name: "costs",
  parallel: 1,
  weight: 1,
  measuresEach: true,
  generate(random) {
    const kind = random.pick(Object.keys(REQUESTS));
    const request = REQUESTS[kind];
    if (request === undefined) throw new Error(`there is no request "${kind}"`);
    return {
      kind,
      shown: () => kind,
      async play({ url, credentials }) {
        const body = request.body();
        const response = await fetch(url + request.path, {
          method: "POST",
          headers: { ...Object.fromEntries(credentials), ...request.headers },
          body: typeof body === "string" ? body : new Uint8Array(body),
        });
        await response.arrayBuffer();
        return response.status < 500 || response.status === 503 ? [] : [`answered ${response.status}`];
      },
    };
  },
};
