import { toBinary } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  ImportedApiKeysService,
  ListImportedApiKeysResponseSchema,
} from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { newRawKey, table } from "../support/conformance.ts";
import { answered, type CallRpc } from "../support/protocols/call.ts";
import { draft } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { compareProtocols, scenario } from "../support/protocols/scenario.ts";
import type { Json } from "../support/rest.ts";

/** The fast path and the other path of verification. */
const suite = useProtocols();
const slow = useProtocols({ KEYHOLD_FAST_PATH: "off" });

const { batchCreateImportedApiKeys: batchCreate, listImportedApiKeys: list } = ImportedApiKeysService.method;
const { batchVerifyApiKeys: batchVerify } = ApiKeysService.method;

const GRPC_LIMIT = 4 * 2 ** 20;

/** Keys of about 30 KiB, the largest that the limits of fields allow, except for names outside ASCII. */
const SCOPES = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(255, "s"));
const METADATA = Object.fromEntries(Array.from({ length: 4 }, (_, index) => [`${index}`, "m".repeat(1023)]));
const FAT = { name: "n".repeat(255), actorId: "response-limits", scopes: SCOPES, metadata: METADATA };
const KEYS = 400;
const BATCH = 100;

const fatRequests = (count: number) => Array.from({ length: count }, () => ({ ...FAT, rawKey: newRawKey() }));

/** `@grpc/grpc-js` with its default limit. */
const grpc = (): CallRpc => suite.protocols[0]?.call ?? expect.unreachable();

const rawKeys: string[] = [];
const keyIds: string[] = [];

beforeAll(async () => {
  for (let count = 0; count < KEYS; count += BATCH) {
    const requests = fatRequests(BATCH);
    const { results } = answered(await grpc()(batchCreate, { requests }));
    rawKeys.push(...requests.map(({ rawKey }) => rawKey));
    keyIds.push(...results.map(({ importedApiKey }) => importedApiKey?.keyId ?? ""));
  }
});

test.for([50, 100, 1000])("pages of %i large keys stay below the limit, and list each key once", async (pageSize) => {
  const filter = `actor_id="${FAT.actorId}"`;
  const listed: string[] = [];
  let pages = 0;
  for (let pageToken: string | undefined; pageToken !== ""; pages++) {
    const page = answered(await grpc()(list, { pageSize, pageToken: pageToken ?? "", filter }));
    expect(toBinary(ListImportedApiKeysResponseSchema, page).length).toBeLessThan(GRPC_LIMIT);
    expect(page.importedApiKeys.length).toBeLessThanOrEqual(pageSize);
    listed.push(...page.importedApiKeys.map(({ keyId }) => keyId));
    pageToken = page.nextPageToken;
  }
  expect(listed).toEqual(keyIds.toSorted().reverse());
  // A full page has the requested size, or nearly the largest one that fits.
  expect(pages).toBe(Math.ceil(KEYS / Math.min(pageSize, 137)));
});

/** A call that makes nothing, because its response would be too large. `count`: how many of its items fit. */
const tooLarge = (count: number): Json => {
  const description = `the response could exceed 4194304 bytes, the gRPC client limit: only the first ${count} items fit into one call; send the rest in another call`;
  return {
    code: "INVALID_ARGUMENT",
    message: `requests: ${description}`,
    details: {
      "google.rpc.ErrorInfo": { reason: "INVALID_ARGUMENT", domain: "keyhold", metadata: {} },
      "google.rpc.BadRequest": { field_violations: [{ field: "requests", description, reason: "TOO_LARGE" }] },
    },
    headers: {},
  };
};

test("a batch import whose response may be too large imports nothing, over every protocol", async () => {
  const requests = fatRequests(138);
  const refused = scenario(batchCreate, "", (call) => call(batchCreate, { requests }), tooLarge(137));
  await compareProtocols(suite.protocols, refused, 2);
  const [row] = await suite.sql`SELECT count(*)::integer AS count FROM api_keys WHERE actor_id = ${FAT.actorId}`;
  expect(row?.count).toBe(KEYS);
});

test("an invalid item counts with its error only", async () => {
  const name = "n".repeat(4_000);
  const invalid = Array.from({ length: 999 }, () => ({ ...draft(), name, rawKey: newRawKey() }));
  const requests = [...invalid, { ...draft(), rawKey: newRawKey() }];
  expect(await grpc()(batchCreate, { requests })).toMatchObject({ message: { successCount: 1, failureCount: 999 } });
});

test("a usual batch of a thousand is imported, also with scopes and metadata", async () => {
  const scopes = Array.from({ length: 20 }, (_, index) => `service-${index}:resource.read`);
  const metadata = { team: "payments", environment: "production", ticket: "OPS-12345", contact: "a@example.com" };
  const requests = Array.from({ length: 1000 }, () => ({ ...draft(), scopes, metadata, rawKey: newRawKey() }));
  expect(answered(await grpc()(batchCreate, { requests })).successCount).toBe(1000);
});

test.for(table(["the fast path", "Connect and Fastify"]))(
  "a batch verification that is too large fails as a whole, over every protocol of %s",
  async (path) => {
    const { protocols } = path === "the fast path" ? suite : slow;
    const { call } = protocols[0] ?? expect.unreachable();
    if (protocols === slow.protocols) {
      for (let start = 0; start < 200; start += BATCH) {
        const requests = rawKeys.slice(start, start + BATCH).map((rawKey) => ({ ...FAT, rawKey }));
        answered(await call(batchCreate, { requests }));
      }
    }
    const ask = (count: number) => rawKeys.slice(0, count).map((credential) => ({ credential }));
    const refused = scenario(batchVerify, "", (one) => one(batchVerify, { requests: ask(200) }), tooLarge(138));
    await compareProtocols(protocols, refused, 2);
    const { results } = answered(await call(batchVerify, { requests: ask(138) }));
    expect(results.map(({ isValid }) => isValid)).toEqual(Array(138).fill(true));
    expect(results[137]?.scopes).toEqual(SCOPES);
  },
);
