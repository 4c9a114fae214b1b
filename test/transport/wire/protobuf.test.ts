import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  BatchVerifyApiKeysRequestSchema,
  type DeriveTokenRequest,
  DeriveTokenRequestSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { BatchCreateImportedApiKeysRequestSchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { CreateIssuedApiKeyRequestSchema } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { valueLimits } from "../../../src/transport/wire/json/parse.ts";
import { readBinaryMessage } from "../../../src/transport/wire/protobuf.ts";

/** The limit on values in JSON. */
const MAX = 250_000;

const EMPTY_ITEM = Buffer.from([0x0a, 0x00]);

const LIMITS = valueLimits(2 ** 22);

const reading = (desc: DescMessage) => (bytes: Uint8Array) => readBinaryMessage(desc, bytes, LIMITS);

function items(count: number): Uint8Array {
  return Buffer.alloc(2 * count, EMPTY_ITEM);
}

describe("the fields of a binary message", () => {
  const read = reading(BatchVerifyApiKeysRequestSchema);

  test.for([0, 1, MAX])("%i items pass", (count) => {
    expect(() => read(items(count))).not.toThrow();
  });

  test("one above the limit is refused", () => {
    expect(() => read(items(MAX + 1))).toThrow("has more than 250000 values");
  });

  test("4 MiB of empty items are refused well before they could be decoded", () => {
    const bytes = items(2 * 2 ** 20);
    const { user } = process.cpuUsage();
    expect(() => read(bytes)).toThrow();
    expect(process.cpuUsage().user - user).toBeLessThan(250_000);
  });

  test("fields in items count", () => {
    const item = Buffer.from([0x0a, 0x04, 0x0a, 0x00, 0x0a, 0x00]);
    expect(() => read(Buffer.alloc(item.length * 84_000, item))).toThrow();
    expect(() => read(Buffer.alloc(item.length * 83_000, item))).not.toThrow();
  });

  test("unknown fields count", () => {
    expect(() => read(Buffer.alloc(2 * MAX + 2, Buffer.from([0x78, 0x00])))).toThrow();
  });

  test("values of a Struct count at any depth", () => {
    const values = Array.from({ length: 130_000 }, () => null);
    const request: DeriveTokenRequest = create(DeriveTokenRequestSchema, { customClaims: { a: { b: values } } });
    const bytes = toBinary(DeriveTokenRequestSchema, request);
    expect(() => reading(DeriveTokenRequestSchema)(bytes)).toThrow();
  });

  test.for([
    [MAX - 1, true],
    [MAX + 1, false],
  ] as const)("each of %i entries of a map counts once", ([count, isFew]) => {
    const metadata = Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}`, "a"]));
    const bytes = toBinary(CreateIssuedApiKeyRequestSchema, create(CreateIssuedApiKeyRequestSchema, { metadata }));
    const judge = () => reading(CreateIssuedApiKeyRequestSchema)(bytes);
    if (isFew) expect(judge).not.toThrow();
    else expect(judge).toThrow();
  });

  test("the largest valid batch passes", () => {
    const metadata = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`key_${i}`, "value"]));
    const scopes = Array.from({ length: 100 }, (_, i) => `scope:${i}`);
    const one = { rawKey: "k", name: "n", actorId: "a", scopes, metadata, ttl: "1h", requestId: "r" };
    const request = create(BatchCreateImportedApiKeysRequestSchema, {
      requests: Array.from({ length: 1000 }, () => one),
    });
    const bytes = toBinary(BatchCreateImportedApiKeysRequestSchema, request);
    expect(() => reading(BatchCreateImportedApiKeysRequestSchema)(bytes)).not.toThrow();
  });

  test("malformed input is refused, and not quoted", () => {
    const error = "body: is not a well-formed request for this RPC";
    expect(() => read(Buffer.alloc(600_000, 0xff))).toThrow(error);
    expect(() => read(Buffer.concat([items(10), Buffer.alloc(600_000, 0x07)]))).toThrow(error);
  });

  test("a long string is one field", () => {
    const request = create(BatchVerifyApiKeysRequestSchema, { requests: [{ credential: "\n\u0000".repeat(400_000) }] });
    expect(() => read(toBinary(BatchVerifyApiKeysRequestSchema, request))).not.toThrow();
  });
});
