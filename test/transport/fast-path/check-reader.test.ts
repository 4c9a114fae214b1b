import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkCall } from "../../../bench/load/grpc-load.ts";
import { CheckRequestSchema } from "../../../gen/envoy/service/auth/v3/external_auth_pb.js";
import { type CheckedRequest, readCheckRequest } from "../../../src/api/envoy/check-request.ts";
import { readUsualCheck } from "../../../src/transport/fast-path/check-reader.ts";
import { type CheckInit, describeRequest } from "../../support/ext-authz.ts";

const encode = (request: CheckInit) => toBinary(CheckRequestSchema, create(CheckRequestSchema, request));
const decode = (bytes: Uint8Array): CheckedRequest => readCheckRequest(fromBinary(CheckRequestSchema, bytes));

/** Returns whether the fast reader reads the bytes; then the complete decoder must return the same. */
function agrees(bytes: Uint8Array): boolean {
  const read = readUsualCheck(bytes);
  if (read !== undefined) expect(read).toEqual(decode(bytes));
  return read !== undefined;
}

const USUAL: readonly CheckInit[] = [
  checkCall("kh_v1_secret", "read").request,
  describeRequest({
    headers: [
      ["Authorization", "Bearer x"],
      ["Cookie", "a=b"],
      ["X-é", "é\u00ff"],
    ].slice(0, 2) as [string, string][],
  }),
  describeRequest({ headers: [["X-Name", "\u00e9\u00ff\u0080"]] }),
  describeRequest({
    headers: [
      ["X-Name", "a"],
      ["X-Name", "b"],
      ["X-Empty", ""],
    ],
    isRaw: false,
    extensions: { required_scopes: "a", audience: "b" },
  }),
  describeRequest({ path: `/${"a".repeat(500)}?b=c`, source: "2001:db8::1" }),
  describeRequest({ headers: Array.from({ length: 100 }, (_, index) => [`x-${index}`, "v".repeat(100)]) }),
  {},
  { attributes: {} },
  { attributes: { request: {} } },
  { attributes: { request: { http: {} } } },
  { attributes: { request: { http: { headerMap: {} } } } },
  { attributes: { source: { principal: "spiffe://a", service: "b", certificate: "c" }, tlsSession: { sni: "a" } } },
  { attributes: { request: { http: { body: "a body", rawBody: new Uint8Array([255, 0]), size: 5n } } } },
];

test.each(USUAL.map((request, index) => [index, request] as const))("reads what Envoy sends: %i", (_, request) => {
  expect(agrees(encode(request))).toBe(true);
});

const UNUSUAL: readonly CheckInit[] = [
  describeRequest({ headers: [["X-É", "a"]] }),
  describeRequest({ headers: [["X-Name", "é"]], isRaw: false }),
  describeRequest({ path: "/é" }),
  describeRequest({ headers: [["X-Name", "a".repeat(40_000)]] }),
  { attributes: { source: { address: { address: { case: "pipe", value: { path: "/run/a" } } } } } },
  { attributes: { source: { labels: { a: "b" } } } },
  { attributes: { metadataContext: { filterMetadata: { a: { b: "c" } } } } },
];

test.each(UNUSUAL.map((request, index) => [index, request] as const))(
  "leaves to the complete decoder: %i",
  (_, request) => {
    expect(agrees(encode(request))).toBe(false);
  },
);

test("leaves unknown fields and other types to the complete decoder", () => {
  for (const field of [
    [0x10, 1],
    [0x12, 0],
    [0x08, 1],
    [0x0b, 0x0c],
  ])
    expect(readUsualCheck(Buffer.from(field))).toBeUndefined();
});

test("two messages in one are merged, or left to the complete decoder", () => {
  for (const first of USUAL) for (const second of USUAL) agrees(Buffer.concat([encode(first), encode(second)]));
  const twice = encode(USUAL[0] ?? {});
  expect(agrees(Buffer.concat([twice, encode({ attributes: { request: { http: { path: "/b" } } } })]))).toBe(true);
});

const name = fc.oneof(fc.constantFrom("authorization", "X-Api-Key", "__proto__", "constructor", "", "a"), fc.string());
const value = fc.oneof(fc.string(), fc.string({ unit: "binary" }));
const raw = fc.record({ key: name, value, rawValue: fc.uint8Array({ maxLength: 40 }) });
const http = fc.record(
  {
    ...{
      id: value,
      method: value,
      path: value,
      host: value,
      size: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    },
    ...{ headers: fc.dictionary(name, value), headerMap: fc.record({ headers: fc.array(raw) }), body: value },
  },
  { requiredKeys: [] },
);
const requests: fc.Arbitrary<CheckInit> = fc.record({
  attributes: fc.record(
    {
      source: fc.constantFrom(...USUAL.map(({ attributes }) => attributes?.source)),
      request: fc.record({ http }, { requiredKeys: [] }),
      contextExtensions: fc.dictionary(name, value),
    },
    { requiredKeys: [] },
  ),
}) as fc.Arbitrary<CheckInit>;

test("agrees with the complete decoder on any message", () => {
  fc.assert(
    fc.property(requests, (request) => void agrees(encode(request))),
    { numRuns: 2000 },
  );
});

test("agrees with the complete decoder on damaged messages", () => {
  const damages = fc.array(fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) }), {
    minLength: 1,
    maxLength: 3,
  });
  const damaged = fc.tuple(fc.oneof(requests, fc.constantFrom(...USUAL)), damages, fc.option(fc.nat()));
  let read = 0;
  fc.assert(
    fc.property(damaged, ([request, changes, cut]) => {
      const bytes = encode(request);
      for (const { at, byte } of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
      if (agrees(cut === null ? bytes : bytes.subarray(0, cut % (bytes.length + 1)))) read++;
    }),
    { numRuns: 20_000 },
  );
  expect(read).toBeGreaterThan(100);
});
