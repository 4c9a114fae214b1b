import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { FieldMaskSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { IpRestrictionSchema } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ImportedApiKeySchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeySchema } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { derivedMask, maskedUpdate } from "../../../src/api/v2alpha1/update-mask.ts";
import { INVALID_REASONS } from "../../../src/domain/errors.ts";
import { table } from "../../support/conformance.ts";

type Init = MessageInitShape<typeof IssuedApiKeySchema>;

function changes(paths: readonly string[] | undefined, key: Init) {
  const mask = paths === undefined ? undefined : create(FieldMaskSchema, { paths: [...paths] });
  return maskedUpdate(mask, IssuedApiKeySchema, create(IssuedApiKeySchema, key));
}

const FULL: Init = { keyId: "id", name: "a", scopes: ["s"], metadata: { k: "v" } };
const { keyId: _, ...ALL } = FULL;

const TIME = timestampFromMs(1_800_000_000_000);
const IP = create(IpRestrictionSchema, { allowedCidrs: ["192.0.2.0/24"] });

const OUTPUT_ONLY: Init = { status: 1, hint: "b", createTime: {}, revocationReason: 0 };

/** The mask (none: implied by the message), the message, and the changes. */
const GOOD: readonly (readonly [paths: readonly string[] | undefined, key: Init, changes: Init])[] = [
  [["name"], FULL, { name: "a" }],
  [["scopes"], FULL, { scopes: ["s"] }],
  [["metadata"], FULL, { metadata: { k: "v" } }],
  [["metadata", "name"], FULL, { metadata: { k: "v" }, name: "a" }],
  [["name", "name"], FULL, { name: "a" }],
  [["*"], FULL, ALL],
  [["*", "name"], FULL, ALL],
  [["*"], { name: "a" }, { name: "a", scopes: [], metadata: {} }],
  [["scopes", "metadata"], {}, { scopes: [], metadata: {} }],
  [["name"], {}, { name: "" }],
  [["name"], { name: "a", actorId: "ignored", status: 1 }, { name: "a" }],
  [undefined, FULL, ALL],
  [undefined, { keyId: "id", name: "a" }, { name: "a" }],
  [undefined, { scopes: ["s"] }, { scopes: ["s"] }],
  [undefined, { ...FULL, ...OUTPUT_ONLY }, ALL],
  [["expire_time"], { ...FULL, expireTime: TIME }, { expireTime: TIME }],
  [["expire_time"], FULL, { expireTime: undefined }],
  [["*", "expire_time"], FULL, { ...ALL, expireTime: undefined }],
  [["*"], { ...FULL, expireTime: TIME, ipRestriction: IP }, ALL],
  [["*", "ip_restriction"], { ...FULL, expireTime: TIME, ipRestriction: IP }, { ...ALL, ipRestriction: IP }],
  [undefined, { ...FULL, expireTime: TIME, ipRestriction: IP }, ALL],
  [undefined, { ttl: "1h", expireTime: TIME }, { ttl: "1h" }],
  [["ttl"], { ttl: "1h" }, { ttl: "1h" }],
  [["ttl", "expire_time"], { ttl: "1h" }, { ttl: "1h", expireTime: undefined }],
  [["ttl", "expire_time"], {}, { expireTime: undefined, ttl: undefined }],
  [undefined, { ttl: "1h" }, { ttl: "1h" }],
  [["*"], { name: "a", ttl: "1h" }, { name: "a", scopes: [], metadata: {}, ttl: "1h" }],
  [["ip_restriction"], FULL, { ipRestriction: undefined }],
  [undefined, { name: "a", restrictedToActorIds: ["b"] }, { name: "a", restrictedToActorIds: ["b"] }],
  [undefined, { ...FULL, actorId: "b" }, { ...ALL, actorId: "b" }],
  [["*"], { ...FULL, ...OUTPUT_ONLY, actorId: "b" }, { ...ALL, actorId: "b" }],
];

test.each(table(GOOD))("%#: the mask %j selects the changes", (paths, key, expected) => {
  expect(changes(paths, key)).toEqual(expected);
  // toEqual ignores a field without a value, which is one to clear.
  expect(Object.keys(changes(paths, key)).sort()).toEqual(Object.keys(expected).sort());
});

test("fields that the mask omits are not among the changes, not even as undefined", () => {
  expect(Object.keys(changes(["name"], FULL))).toEqual(["name"]);
});

test("of a derived mask, fields that cannot be updated are ignored, unless they are immutable and set", () => {
  const paths = ["scopes", "status", "key_id", "actor_id"];
  const key = create(IssuedApiKeySchema, { ...FULL, scopes: [] });
  const sent = create(FieldMaskSchema, { paths });
  expect(() => maskedUpdate(sent, IssuedApiKeySchema, key)).toThrow(/status is not one of/);
  const mask = derivedMask(paths);
  expect(maskedUpdate(mask, IssuedApiKeySchema, key)).toEqual({ scopes: [] });
  const moved = create(IssuedApiKeySchema, { ...FULL, scopes: [], actorId: "b" });
  expect(maskedUpdate(mask, IssuedApiKeySchema, moved)).toEqual({ scopes: [], actorId: "b" });
});

test("a derived mask changes neither the expiry nor the addresses: a client may send every field that it read", () => {
  const mask = derivedMask(["name", "expire_time", "ttl", "ip_restriction"]);
  for (const controls of [{}, { expireTime: TIME, ipRestriction: IP }]) {
    const key = create(IssuedApiKeySchema, { name: "a", ...controls });
    expect(Object.keys(maskedUpdate(mask, IssuedApiKeySchema, key))).toEqual(["name"]);
  }
});

test("a mask applies equally to the other kind of key", () => {
  const key = create(ImportedApiKeySchema, { keyId: "id", name: "a" });
  expect(maskedUpdate(undefined, ImportedApiKeySchema, key)).toEqual({ name: "a" });
});

const UPDATABLE = ["name", "scopes", "metadata", "expire_time", "ip_restriction", "ttl", "rate_limits", "quotas"];

/** Fields of a key that cannot be changed, and unknown fields. */
const REFUSED: readonly (readonly [paths: readonly string[] | undefined, key: Init, message: RegExp])[] = [
  ...IssuedApiKeySchema.fields
    .filter(({ name }) => !UPDATABLE.includes(name))
    .map(
      ({ name }) => [[name], FULL, new RegExp(`^update_mask: ${name} is not one of ${UPDATABLE.join(", ")}$`)] as const,
    ),
  [["name", "actor_id"], FULL, /actor_id/],
  [["*", "actor_id"], FULL, /actor_id/],
  [["unknown"], FULL, /unknown/],
  [["ttl"], FULL, /contains ttl, but ttl is not set/],
  [["expire_time"], { ttl: "1h" }, /ttl is set; list ttl/],
  [[""], FULL, /is not one of/],
  [["Name"], FULL, /Name/],
  [["scopes.0"], FULL, /scopes\.0/],
  [["metadata.k"], FULL, /metadata\.k/],
  [["metadata.*"], FULL, /^update_mask: metada… is not one of/],
  [["__proto__"], FULL, /__proto__/],
  [["constructor"], FULL, /constructor/],
  [[], FULL, /must list at least one of/],
  [undefined, {}, /must list at least one of/],
  [undefined, { expireTime: TIME }, /^update_mask: must list expire_time explicitly/],
  [
    undefined,
    { actorId: "a", expireTime: TIME, ipRestriction: IP },
    /must list expire_time, ip_restriction explicitly/,
  ],
  [undefined, { keyId: "id" }, /must list at least one of/],
  [undefined, { keyId: "id", actorId: "b", ...OUTPUT_ONLY }, /must list at least one of/],
];

test.each(table(REFUSED))("%#: the mask %j is refused", (paths, key, message) => {
  const violations = [
    { field: "update_mask", description: expect.any(String), reason: expect.toBeOneOf([...INVALID_REASONS]) },
  ];
  expect(() => changes(paths, key)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT", violations }));
  expect(() => changes(paths, key)).toThrow(message);
});

test("a mask may have any number of paths; of the bad ones, the first 20 are reported", () => {
  expect(changes(Array(260_000).fill("name"), FULL)).toEqual({ name: "a" });
  const bad = Array.from({ length: 260_000 }, (_, index) => `p${index}`);
  const descriptions = bad.slice(0, 20).map((path) => ({
    field: "update_mask",
    description: `${path} is not one of ${UPDATABLE.join(", ")}`,
    reason: "UNKNOWN_FIELD",
  }));
  expect(() => changes(bad, FULL)).toThrow(expect.objectContaining({ violations: descriptions }));
});

test("only the beginning of a path that may be a secret is shown", () => {
  expect(() => changes([`kh_v1_${"0".repeat(94)}`], FULL)).toThrow(/^update_mask: kh_v1_… is not one of/);
});
