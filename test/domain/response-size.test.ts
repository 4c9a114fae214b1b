import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ApiKeySchema } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { VerifyApiKeyResponseSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { BatchCreateImportedApiKeysResponse_ResultSchema } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeySchema } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { apiKey, importedApiKey, issuedApiKey } from "../../src/api/v2alpha1/key-resources.ts";
import { verificationOf, verificationSize } from "../../src/api/v2alpha1/verification.ts";
import type { ApiKey } from "../../src/domain/key.ts";
import { limitsOf } from "../../src/domain/rate-limit.ts";
import { HASH_ALGORITHMS } from "../../src/domain/raw-key-hash.ts";
import { countFitting, MAX_ITEMS_BYTES, requireFit, responseSize } from "../../src/domain/response-size.ts";
import { anyQuotas, anyRateLimits } from "../support/rate-limits.ts";

const text = (maxLength: number) => fc.string({ unit: "binary", maxLength });
const time = fc.date({
  min: new Date("1970-01-01T00:00:00Z"),
  max: new Date("2500-01-01T00:00:00Z"),
  noInvalidDate: true,
});
const scope = fc.string({ unit: fc.constantFrom(..."az:~!"), minLength: 1, maxLength: 255 });

/** A key with any of its optional fields. */
const anyKey: fc.Arbitrary<ApiKey> = fc.record({
  keyId: fc.uuid(),
  kind: fc.constantFrom("issued", "imported"),
  name: text(255),
  actorId: text(255),
  scopes: fc.array(scope, { maxLength: 100 }),
  metadata: fc.dictionary(text(20), text(40), { maxKeys: 64 }),
  hint: fc.constantFrom("", "abcdefghijklmnop_v1_…wxyz", "…\u{1f511}\u{1f511}\u{1f511}\u{1f511}"),
  createTime: time,
  updateTime: time,
  expireTime: fc.option(time),
  lastUsedTime: fc.option(time),
  rotateTime: fc.option(time),
  lastUsedAddress: fc.option(fc.constantFrom("203.0.113.0/24", "2001:db8:1111:2222:3333:4444:5555:6666")),
  previousSecrets: fc.array(
    fc.record({
      hint: fc.option(fc.constant("abcdefghijklmnop_v1_…wxyz")),
      createTime: fc.option(time),
      expireTime: time,
      lastUsedTime: fc.option(time),
    }),
    { maxLength: 16 },
  ),
  revokeTime: fc.option(time),
  revocationReason: fc.option(fc.constantFrom("UNSPECIFIED", "PRIVILEGE_WITHDRAWN")),
  revocationDescription: fc.option(text(1000)),
  disableTime: fc.option(time),
  disableReason: fc.option(text(1000)),
  allowedCidrs: fc.option(fc.array(fc.string({ unit: fc.constantFrom(..."0f:/"), maxLength: 43 }), { maxLength: 64 })),
  restrictedToActorIds: fc.option(fc.array(text(255), { maxLength: 100 })),
  rateLimits: anyRateLimits,
  quotas: anyQuotas,
  createdBy: fc.option(text(300)),
  revokedBy: fc.option(text(300)),
  disabledBy: fc.option(text(300)),
  hashAlgorithm: fc.option(fc.constantFrom(...HASH_ALGORITHMS)),
  adoptBeforeTime: fc.option(time),
  adoptTime: fc.option(time),
});

/** The size as an item of a list: the message, its tag and its length. */
function itemSize<D extends DescMessage>(desc: D, init: MessageInitShape<D>): number {
  const { length } = toBinary(desc, create(desc, init));
  return 1 + (length < 128 ? 1 : length < 16_384 ? 2 : 3) + length;
}

test("the size of a key is an upper bound, and close, in every response", () => {
  const issuer = "https://issuer.example";
  fc.assert(
    fc.property(anyKey, (key) => {
      const keyLimits = limitsOf(key);
      const limits = keyLimits?.map((limit) => ({ limit, ...EXCEEDED }));
      const verdict = {
        ...VALID,
        key,
        scopes: key.scopes,
        expireTime: key.expireTime,
        keyLimits,
        ...(limits && { limits }),
      };
      const [response, bytes] = [verificationOf(verdict, issuer), verificationSize(verdict, issuer)];
      const sizes = [
        [responseSize(key), itemSize(IssuedApiKeySchema, issuedApiKey(key, 0))],
        [responseSize(key), itemSize(ApiKeySchema, apiKey(key, 0))],
        [
          responseSize({ ...key, restrictedToActorIds: null }),
          itemSize(BatchCreateImportedApiKeysResponse_ResultSchema, {
            index: 999,
            importedApiKey: importedApiKey(key, 0),
          }),
        ],
        [bytes, itemSize(VerifyApiKeyResponseSchema, response)],
      ];
      for (const [bound = 0, size = 0] of sizes) {
        expect(bound).toBeGreaterThanOrEqual(size);
        expect(bound - size).toBeLessThan(
          256 +
            8 * Object.keys(key.metadata).length +
            key.scopes.length +
            NOT_VERIFIED +
            60 * ((keyLimits?.length ?? 0) + key.previousSecrets.length),
        );
      }
    }),
  );
});

/** The state of a limit with the longest fields. */
const EXCEEDED = { cost: 1, remaining: 1e9, resetTime: 4e12, retryAfter: 2_678_399_999, isExceeded: true };

const VALID = {
  valid: true,
  secretVersion: 1,
  keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  credentialType: "ISSUED_API_KEY",
  token: null,
} as const;

/** A verdict has no description of the revocation, which `bytes` does not count; the name neither. */
const NOT_VERIFIED = 64;

test("items fit up to the limit", () => {
  const half = MAX_ITEMS_BYTES / 2;
  expect(countFitting([half, half, 1], (size) => size)).toBe(2);
  expect(countFitting([half, half + 1], (size) => size)).toBe(1);
  expect(countFitting([], () => 1)).toBe(0);
  requireFit([half, half], (size) => size);
  expect(() => requireFit([half, half, 1], (size) => size)).toThrow(
    expect.objectContaining({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining("4194304 bytes"),
      violations: [
        {
          field: "requests",
          reason: "TOO_LARGE",
          description: expect.stringContaining("only the first 2 items fit into one call; send"),
        },
      ],
    }),
  );
});
