import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CheckResponseSchema } from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { type CheckedRequest, decodeCheckRequest } from "../../../src/api/envoy/check-request.ts";
import { answerTo } from "../../../src/api/envoy/check-response.ts";
import { UNAUTHENTICATED } from "../../../src/api/gateways/decision.ts";
import { decodeCheckResponse, type EnvoyCheck, encodeCheck } from "../../support/envoy-protos.ts";
import { describeRequest } from "../../support/ext-authz.ts";

/** The messages of ext_authz, as Envoy's own protos encode and decode them. */

const address = fc.oneof(
  fc.record({ socketAddress: fc.record({ address: fc.string(), portValue: fc.nat(65_535), protocol: fc.nat(1) }) }),
  fc.record({ pipe: fc.record({ path: fc.string() }) }),
  fc.constant({}),
);
const peer = fc.record(
  { address: fc.option(address), service: fc.string(), labels: fc.dictionary(fc.string(), fc.string()) },
  { requiredKeys: ["address"] },
);
/** Maps of protobufjs have no such key. */
const name = fc
  .oneof(fc.constantFrom("authorization", "X-Api-Key", "constructor", "", "a", "É"), fc.string())
  .filter((text) => text !== "__proto__");
const value = fc.string({ unit: "binary" });
const header = fc.record({ key: name, value, rawValue: fc.uint8Array({ maxLength: 40 }).map(Buffer.from) });
const http = fc.record(
  {
    ...{
      id: value,
      method: value,
      path: value,
      host: value,
      size: fc.integer(),
      body: value,
      headers: fc.dictionary(name, value),
    },
    headerMap: fc.record({ headers: fc.array(header) }),
  },
  { requiredKeys: ["path", "headers"] },
);
const attributes = fc.record(
  {
    ...{ source: peer, destination: peer, contextExtensions: fc.dictionary(name, value) },
    ...{ request: fc.record({ http: fc.option(http), time: fc.constant({ seconds: 1, nanos: 2 }) }) },
    ...{ metadataContext: fc.constant({ filterMetadata: { a: {} } }), tlsSession: fc.record({ sni: value }) },
  },
  { requiredKeys: ["source", "request", "contextExtensions"] },
);

type Attributes = typeof attributes extends fc.Arbitrary<infer T> ? T : never;

/** Returns what a decision depends on. */
function expected({ source, request, contextExtensions }: Attributes): CheckedRequest {
  const { http } = request;
  const list = http?.headerMap?.headers.map(({ key, value: text, rawValue }) => [
    Buffer.from(key).toString("latin1"),
    rawValue.length > 0 ? rawValue.toString("latin1") : text,
  ]);
  const pairs = list ?? Object.entries(http?.headers ?? {});
  return {
    isHttp: http !== null,
    source: source.address !== null && "socketAddress" in source.address ? source.address.socketAddress.address : "",
    path: http?.path ?? "",
    fields: pairs.flatMap(([key = "", text = ""]) => [key.toLowerCase(), text]),
    extensions: contextExtensions,
  };
}

test("Keyhold reads what Envoy writes", () => {
  fc.assert(
    fc.property(attributes, (sent) => {
      expect(decodeCheckRequest(encodeCheck({ attributes: sent } as EnvoyCheck))).toEqual(expected(sent));
    }),
    { numRuns: 500 },
  );
});

test("an empty list of headers counts, and no list does not", () => {
  const fieldsOf = (more: object) =>
    decodeCheckRequest(encodeCheck({ attributes: { request: { http: { headers: { a: "b" }, ...more } } } })).fields;
  expect(fieldsOf({ headerMap: {} })).toEqual([]);
  expect(fieldsOf({})).toEqual(["a", "b"]);
});

test("a damaged message is read or rejected", () => {
  const damages = fc.array(fc.record({ at: fc.nat(), byte: fc.nat(255) }), { minLength: 1, maxLength: 3 });
  const sent = fc.oneof(
    attributes,
    fc.constant(describeRequest({ headers: [["Authorization", "Bearer x"]] }).attributes),
  );
  const count = { read: 0, rejected: 0 };
  fc.assert(
    fc.property(sent, damages, fc.option(fc.nat(), { freq: 1 }), (one, changes, cut) => {
      const bytes = encodeCheck({ attributes: one } as EnvoyCheck);
      for (const { at, byte } of changes) bytes[at % bytes.length] = byte;
      const end = cut === null ? bytes.length : cut % (bytes.length + 1);
      try {
        const { fields } = decodeCheckRequest(bytes.subarray(0, end));
        expect(fields.every((field) => typeof field === "string")).toBe(true);
        count.read++;
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
        count.rejected++;
      }
    }),
    { numRuns: 1_000 },
  );
  expect(Math.min(count.read, count.rejected)).toBeGreaterThan(100);
});

test.each([
  ["a varint in place of a name", [0x08, 1]],
  ["a header that is longer than the list", [0x0a, 5, 0x0a, 1, 97]],
  ["a name that is longer than its header", [0x0a, 2, 0x0a, 1, 97]],
  ["a name that is longer than the list", [0x0a, 3, 0x0a, 9, 97]],
  ["a group without an end", [0x0b]],
])("never reads past its end: %s", (_, list) => {
  const http = [0x6a, list.length, ...list];
  const message = [0x22, http.length + 2, 0x12, http.length, ...http];
  const bytes = Buffer.from([0x0a, message.length, ...message, 0x0a, 0x00]);
  const read = () => decodeCheckRequest(bytes).fields;
  if (list[0] === 0x08) expect(read()).toEqual([]);
  else expect(read).toThrow(RangeError);
});

test("Envoy reads what Keyhold writes", () => {
  const encode = (answer: ReturnType<typeof answerTo>) =>
    decodeCheckResponse(toBinary(CheckResponseSchema, create(CheckResponseSchema, answer)));
  expect(encode(answerTo(UNAUTHENTICATED, []))).toMatchObject({
    ...{ status: { code: 16 }, httpResponse: "deniedResponse" },
    deniedResponse: { status: { code: 401 }, body: UNAUTHENTICATED.body },
  });
  const identity = { keyId: "k", actorId: "", scopes: [], metadata: {} };
  const headers = [["x-keyhold-key-id", "k"]] as const;
  expect(encode(answerTo({ status: 200, headers, identity, body: "" }, ["x_keyhold_a", ""]))).toMatchObject({
    ...{ status: { code: 0 }, httpResponse: "okResponse" },
    okResponse: {
      headers: [{ header: { key: "x-keyhold-key-id", value: "k" }, appendAction: 2, keepEmptyValue: true }],
      headersToRemove: ["x_keyhold_a"],
    },
    dynamicMetadata: { fields: { key_id: { stringValue: "k" } } },
  });
});
