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
import { parseValid } from "../../src/api/validation.ts";
import { attempt, checkAll, invalidArgument, KeyholdError } from "../../src/domain/errors.ts";
import { table } from "../support/conformance.ts";

const KEY = { name: "a", actorId: "a" };
const list = <T>(count: number, item: T) => Array.from({ length: count }, () => item);

interface Case {
  readonly what: string;
  readonly fields: () => string[];
  readonly invalid: readonly string[];
}

/** `invalid` has the fields that break a rule. */
function of<D extends DescMessage>(what: string, desc: D, init: MessageInitShape<D>, ...invalid: string[]): Case {
  return { what, fields: () => checkOf(desc)(create(desc, init)).map(({ field }) => field), invalid };
}

/** In no enum; its type hides that from the compiler. */
const NO_VALUE: number = 99;

const CREATE = CreateIssuedApiKeyRequestSchema;
/** Those that no request of `test/conformance/` breaks. */
const LIMITS: readonly Case[] = [
  of("an unknown algorithm", DeriveTokenRequestSchema, { credential: "a", algorithm: NO_VALUE }, "algorithm"),
  of("an unknown reason", RevokeApiKeyRequestSchema, { keyId: "a", reason: NO_VALUE }, "reason"),
  of("a negative reason", RevokeApiKeyRequestSchema, { keyId: "a", reason: -NO_VALUE }, "reason"),
  of("an unknown collection", RevokeApiKeyRequestSchema, { keyId: "a", collection: "apiKeys" }, "collection"),
  of(
    "a description of 1001 characters",
    RevokeApiKeyRequestSchema,
    { keyId: "a", revocationDescription: "a".repeat(1001) },
    "revocation_description",
  ),
  of("an update without fields", UpdateIssuedApiKeyRequestSchema, {}, "issued_api_key"),
  of(
    "an update to 101 scopes",
    UpdateIssuedApiKeyRequestSchema,
    { issuedApiKey: { scopes: list(101, "a") } },
    "issued_api_key.scopes",
  ),
  of("a batch of 1000 invalid items", BatchVerifyApiKeysRequestSchema, { requests: list(1000, {}) }),
];

test.each(table(LIMITS))("$what: the invalid fields are $invalid", ({ fields, invalid }) => {
  expect(fields()).toEqual(invalid);
});

test("the entries of a list that is too long are not checked", () => {
  const message = create(CREATE, { scopes: list(300_000, ""), metadata: { "a\0": "" } });
  expect(checkOf(CREATE)(message).filter(({ field }) => field.startsWith("scopes"))).toEqual([
    { field: "scopes", description: "must have at most 100 entries", reason: "TOO_MANY_ITEMS" },
  ]);
});

test("text that cannot be stored is checked by no other rule, and hides no other field", () => {
  const found = checkOf(CREATE)(create(CREATE, { name: "\0".repeat(300), actorId: "a", scopes: [""] }));
  expect(found.map(({ field, reason }) => [field, reason])).toEqual([
    ["name", "INVALID_CHARACTER"],
    ["scopes[0]", "INVALID_FORMAT"],
  ]);
});

test("an error has at most 20 violations, and describes 5", () => {
  const error = errorOf(() => parseValid(CREATE, create(CREATE, { ...KEY, scopes: list(100, "") }), () => {}));
  expect(error.violations).toHaveLength(20);
  expect(error.message.split("; ")).toHaveLength(6);
  expect(error.message).toMatch(/scopes\[4\]: [^;]*; and more$/);
});

test("a request is parsed once, and what its parser rejects is added to the rules that it breaks", () => {
  const parse = () =>
    checkAll(
      () => refuse("name"),
      () => refuse("ttl"),
      () => refuse("metadata"),
    );
  const invalid = create(CREATE, { actorId: "a" });
  expect(
    errorOf(() => parseValid(CREATE, invalid, parse)).violations.map(({ field, reason }) => [field, reason]),
  ).toEqual([
    ["name", "FIELD_REQUIRED"],
    ["ttl", "TOO_LARGE"],
    ["metadata", "TOO_LARGE"],
  ]);
  let count = 0;
  expect(parseValid(CREATE, create(CREATE, KEY), () => ++count)).toBe(1);
});

function refuse(field: string): never {
  throw invalidArgument(field, "is invalid", "TOO_LARGE");
}

function errorOf(run: () => unknown): KeyholdError {
  const error = attempt(run);
  if (error instanceof KeyholdError) return error;
  throw new Error("nothing was thrown");
}

test("an error lists every invalid field in its message and in its details", () => {
  const refused = expect.objectContaining({
    code: "INVALID_ARGUMENT",
    message: "name: is required; actor_id: is required",
    violations: [
      { field: "name", description: "is required", reason: "FIELD_REQUIRED" },
      { field: "actor_id", description: "is required", reason: "FIELD_REQUIRED" },
    ],
  });
  expect(() => parseValid(CREATE, create(CREATE), () => {})).toThrow(refused);
  expect(() => parseValid(CREATE, create(CREATE, KEY), () => {})).not.toThrow();
});
