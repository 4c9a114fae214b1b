import { brotliCompressSync, constants } from "node:zlib";
import { create, fromJson, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  BatchCreateImportedApiKeysRequestSchema,
  ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { paths } from "../../support/rest.ts";
import { rpcPath } from "../../support/wire.ts";
import { http1Answers } from "../answers.ts";
import type { Family } from "../case.ts";
import { converse, toHttp1 } from "../http1.ts";

const BATCH = `${paths.imported}:batchCreate`;
const BATCH_RPC = rpcPath(ImportedApiKeysService.method.batchCreateImportedApiKeys);
const LIST_RPC = rpcPath(ImportedApiKeysService.method.listImportedApiKeys);
const JSON_TYPE = { "content-type": "application/json" };

/** Milliseconds after which a request counts as unanswered. */
const TIMEOUT = 60_000;

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const members = (count: number, value = "1") => times(count, (i) => `"k${i}":${value}`).join(",");

/** The best quality takes seconds. */
function fastBrotli(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }));
}

interface CostlyRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for GET. */
  readonly body?: () => string | Uint8Array<ArrayBuffer>;
}

/** Returns a valid item of about 4 KiB for the batch with this number. A thousand nearly exceed the size of a request, and of a response. */
function largeItem(batch: number, index: number) {
  return {
    raw_key: `costly-${batch}-${index}-`.padEnd(300, "x"),
    name: "n".repeat(255),
    actor_id: "a".repeat(255),
    scopes: times(10, (i) => `scope-${i}-`.padEnd(200, "y")),
    metadata: Object.fromEntries(times(25, (i) => [`m${i}`, "v".repeat(40)])),
  };
}

/** Returns a valid batch that is new each time. */
function largestBatch() {
  const batch = Number(process.hrtime.bigint());
  return { requests: times(1000, (i) => largeItem(batch, i)) };
}

/** Repeats a text. */
function knownBatch(): () => string {
  let text: string | undefined;
  return () => {
    text ??= JSON.stringify(largestBatch());
    return text;
  };
}

function protobuf(request: () => MessageInitShape<typeof BatchCreateImportedApiKeysRequestSchema>): CostlyRequest {
  const schema = BatchCreateImportedApiKeysRequestSchema;
  const body = () => new Uint8Array(toBinary(schema, create(schema, request())));
  return { path: BATCH_RPC, headers: { "content-type": "application/proto" }, body };
}

function json(path: string, body: () => string): CostlyRequest {
  return { path, headers: JSON_TYPE, body };
}

/** Requests that reach or exceed the limits of their RPCs in size or number of values. */
const REQUESTS: Readonly<Record<string, CostlyRequest>> = {
  "95,000 unknown members": json(paths.issued, () => `{${members(95_000)}}`),
  "240,000 unknown members": json(BATCH, () => `{${members(240_000)}}`),
  "240,000 unknown members over Connect": json(BATCH_RPC, () => `{${members(240_000)}}`),
  "95,000 unknown members with Brotli": {
    path: rpcPath(IssuedApiKeysService.method.createIssuedApiKey),
    headers: { ...JSON_TYPE, "content-encoding": "br" },
    body: () => fastBrotli(`{${members(95_000)}}`),
  },
  "240,000 metadata entries": json(BATCH, () => `{"requests":[{"metadata":{${members(240_000, '"v"')}}}]}`),
  "100,000 claims": json(`${paths.keys}:derive`, () => `{"custom_claims":{${members(100_000)}}}`),
  "4 MB in a field with a pattern": json(BATCH, () => `{"requests":[{"scopes":["${"é".repeat(2_000_000)}"]}]}`),
  "100,000 bad scopes": json(BATCH, () =>
    JSON.stringify({ requests: times(1000, () => ({ scopes: Array(100).fill("é") })) }),
  ),
  "1,000 names that are too long": json(BATCH, () =>
    JSON.stringify({ requests: times(1000, () => ({ name: "n".repeat(4_000) })) }),
  ),
  "4 MB in a raw key like a JWT": json(BATCH, () => {
    const header = Buffer.from(JSON.stringify({ alg: "none", kid: "k".repeat(2_900_000) })).toString("base64url");
    return JSON.stringify({ requests: [{ raw_key: `${header}..` }] });
  }),
  "140,000 bad paths in an update mask": json(rpcPath(IssuedApiKeysService.method.updateIssuedApiKey), () =>
    JSON.stringify({ issuedApiKey: {}, updateMask: times(140_000, (i) => i.toString(36)).join(",") }),
  ),
  "4 MB of white space": json(BATCH, () => `{"requests":[${" ".repeat(4_000_000)}]}`),
  "2,000,000 escaped quotes": json(BATCH, () => `{"requests":[{"raw_key":"${'\\"'.repeat(2_000_000)}"}]}`),
  "99,000 metadata entries": json(BATCH, () => `{"requests":[{"metadata":{${members(99_000, '"v"')}}}]}`),
  "99,000 metadata entries over Connect": json(
    BATCH_RPC,
    () => `{"requests":[{"metadata":{${members(99_000, '"v"')}}}]}`,
  ),
  "99,000 members in objects with names of their own": json(
    BATCH,
    () =>
      `{"requests":[${times(12_000, (i) => `{"metadata":{${times(5, (j) => `"${(5 * i + j).toString(36)}":""`)}}}`)}]}`,
  ),
  "1,000 items with 64 names of their own": json(
    BATCH,
    () =>
      `{"requests":[${times(1_000, (i) => `{"metadata":{${times(64, (j) => `"${(64 * i + j).toString(36)}":""`)}}}`)}]}`,
  ),
  "120,000 empty items": protobuf(() => ({ requests: times(120_000, () => ({})) })),
  "the largest valid batch": json(BATCH, () => JSON.stringify(largestBatch())),
  "the largest valid batch over Connect": json(BATCH_RPC, () => JSON.stringify(largestBatch())),
  "the largest valid batch over Connect with Brotli": {
    path: BATCH_RPC,
    headers: { ...JSON_TYPE, "content-encoding": "br" },
    body: () => fastBrotli(JSON.stringify(largestBatch())),
  },
  "the largest valid batch in Protobuf": protobuf(() =>
    fromJson(BatchCreateImportedApiKeysRequestSchema, largestBatch()),
  ),
  "the largest batch of known keys": json(BATCH, knownBatch()),
  "the largest page": { path: `${paths.imported}?page_size=1000`, headers: {} },
  "the largest page over Connect": json(LIST_RPC, () => '{"page_size":1000}'),
};

/** The most expensive requests: none may block the event loop. */
export const costs: Family = {
  name: "costs",
  parallel: 1,
  weight: 1,
  measuresEach: true,
  generate(random) {
    const kind = random.pick(Object.keys(REQUESTS));
    const request = REQUESTS[kind];
    if (request === undefined) throw new Error(`unknown request "${kind}"`);
    return {
      kind,
      description: () => kind,
      /** Uses a new connection: on a shared session that sends so much, Node's HTTP/2 client refuses other calls. */
      async run({ port, tls, credentials }) {
        const { path, headers, body } = request;
        const message = toHttp1({
          kind,
          method: body === undefined ? "GET" : "POST",
          path,
          fields: [...credentials, ...Object.entries(headers)],
          body: Buffer.from(body?.() ?? ""),
        });
        const { received } = await converse(port, [message], { timeout: TIMEOUT, tls });
        const [answer] = http1Answers(received);
        if (answer === undefined) return ["did not answer"];
        return answer.status < 500 || answer.status === 503 ? [] : [`answered ${answer.status}`];
      },
    };
  },
};
