import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  BatchVerifyApiKeysRequestSchema,
  DeriveTokenRequestSchema,
  RevokeApiKeyRequestSchema,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  CreateIssuedApiKeyRequestSchema,
  UpdateIssuedApiKeyRequestSchema,
} from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { checkOf } from "../../src/api/rules.ts";
import { textViolationsIn } from "../../src/api/text.ts";
import { table } from "../support/conformance.ts";

const NUL = "must not contain the character NUL";
const SURROGATE = "must be well-formed Unicode, without lone surrogates";

const REASONS: ReadonlySet<string> = new Set(["INVALID_CHARACTER", "OUT_OF_RANGE"]);

function textViolations<D extends DescMessage>(desc: D, init: MessageInitShape<D>) {
  const found = checkOf(desc)(create(desc, init)).filter(({ reason }) => REASONS.has(reason));
  return found.map(({ field, description }) => ({ field, description }));
}

function fieldsOf<D extends DescMessage>(desc: D, init: MessageInitShape<D>): string[] {
  return textViolations(desc, init).map(({ field }) => field);
}

const KEY = { name: "a", actorId: "a" };

test("a message with well-formed texts has no violation", () => {
  const metadata = { "": "", "\u{1f511}": "\u0001 \uffff \u{10ffff}" };
  expect(fieldsOf(CreateIssuedApiKeyRequestSchema, { ...KEY, scopes: ["a"], metadata, ttl: "1h" })).toEqual([]);
  expect(fieldsOf(DeriveTokenRequestSchema, { customClaims: { a: [null, true, 1, { b: "c" }] } })).toEqual([]);
});

/** Fields of a request to create a key, and the reported path. */
const IN_KEYS: readonly (readonly [fields: MessageInitShape<typeof CreateIssuedApiKeyRequestSchema>, field: string])[] =
  [
    [{ name: "\0" }, "name"],
    [{ actorId: "a\0" }, "actor_id"],
    [{ ttl: "\0h" }, "ttl"],
    [{ requestId: "\0" }, "request_id"],
    [{ scopes: ["a", "b\0"] }, "scopes[1]"],
    [{ metadata: { "a\0": "b" } }, "metadata"],
    [{ metadata: { a: "b\0" } }, 'metadata["a"]'],
    [{ metadata: { 'a"b': "\0" } }, 'metadata["a\\"b"]'],
  ];

test.each(table(IN_KEYS))("NUL in %j is found at %s", (fields, field) => {
  const violations = textViolations(CreateIssuedApiKeyRequestSchema, { ...KEY, ...fields });
  expect(violations).toEqual([{ field, description: NUL }]);
});

test("only the beginning of a name that may be a secret is shown", () => {
  const metadata = { [`kh_v1_${"0".repeat(94)}`]: "\0" };
  expect(fieldsOf(CreateIssuedApiKeyRequestSchema, { ...KEY, metadata })).toEqual(['metadata["kh_v1_…"]']);
});

test("every violation of a message is found, in the order of its fields", () => {
  const fields = fieldsOf(CreateIssuedApiKeyRequestSchema, { name: "\0", actorId: "\0", scopes: ["\0", "a", "\0"] });
  expect(fields).toEqual(["name", "actor_id", "scopes[0]", "scopes[2]"]);
});

const CLAIMS = [
  [{ a: "\0" }, 'custom_claims["a"]'],
  [{ "\0": 1 }, "custom_claims"],
  [{ a: { "b\0": 1 } }, 'custom_claims["a"]'],
  [{ a: [1, { b: ["c", "\0"] }] }, 'custom_claims["a"][1]["b"][1]'],
] as const;

test.each(table(CLAIMS))("NUL in the claims %j is found at %s", (customClaims, field) => {
  expect(
    fieldsOf(DeriveTokenRequestSchema, { credential: "a", customClaims: structuredClone(customClaims) as never }),
  ).toEqual([field]);
});

test("a nested message is checked, and reported with its path", () => {
  const issuedApiKey = { keyId: "\0", name: "a\0", metadata: { a: "\0" }, revocationDescription: "\0" };
  expect(fieldsOf(UpdateIssuedApiKeyRequestSchema, { issuedApiKey })).toEqual([
    "issued_api_key.key_id",
    "issued_api_key.name",
    'issued_api_key.metadata["a"]',
    "issued_api_key.revocation_description",
  ]);
});

test("the paths of a field mask are checked", () => {
  const updateMask = { paths: ["name", "a\0"] };
  expect(fieldsOf(UpdateIssuedApiKeyRequestSchema, { updateMask })).toEqual(["update_mask.paths[1]"]);
});

test("absent fields and items of batches are not checked", () => {
  expect(fieldsOf(RevokeApiKeyRequestSchema, {})).toEqual([]);
  expect(fieldsOf(BatchVerifyApiKeysRequestSchema, { requests: [{ credential: "\0" }] })).toEqual([]);
});

const TEXTS: readonly (readonly [text: string, description: string | undefined])[] = [
  ["", undefined],
  ["a\u{1f511}", undefined],
  ["\0", NUL],
  ["a\0b", NUL],
  ["\ud800", SURROGATE],
  ["\udc00\ud800", SURROGATE],
  ["a\ud83d", SURROGATE],
  ["\ud83da", SURROGATE],
];

test.each(table(TEXTS))("the single text %j is checked", (text, description) => {
  expect(textViolationsIn("field", text)).toEqual(
    description === undefined ? [] : [{ field: "field", description, reason: "INVALID_CHARACTER" }],
  );
});

test("a value that is not text has no violation", () => {
  for (const value of [null, undefined, 1, true, [], {}]) expect(textViolationsIn("field", value)).toEqual([]);
});
