import { create, fromBinary, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { VerifyApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { verificationOf } from "../../../src/api/v2alpha1/verification.ts";
import { writeVerifyJson, writeVerifyProto } from "../../../src/transport/fast-path/codecs.ts";
import { limited } from "../../../src/verify/limited.ts";
import { verify } from "../../../src/verify/verify.ts";
import { anyLimit } from "../../support/rate-limits.ts";
import { HOUR, NOW, newFixture } from "../../verify/fixture.ts";

const anyDenial = fc.record({
  limit: anyLimit,
  cost: fc.constant(1),
  remaining: fc.integer({ min: 0, max: 9 }),
  resetTime: fc.integer({ min: NOW, max: NOW + HOUR }),
  retryAfter: fc.option(fc.integer({ min: 0, max: HOUR })),
  isExceeded: fc.constant(true),
});

test.each(["key", "JWT", "macaroon"])("the answer to a denied %s is encoded like by the library", async (kind) => {
  const fixture = newFixture();
  const { keyId, credential } = fixture.issue({ expireTime: new Date(NOW + HOUR) });
  const minted = kind === "JWT" ? fixture.jwt(keyId, NOW + HOUR) : fixture.macaroon(keyId, NOW + HOUR);
  await fc.assert(
    fc.asyncProperty(anyDenial, fc.boolean(), fc.option(fc.constant(true)), async (denied, isAccepted, isStale) => {
      const valid = await verify(fixture.context, kind === "key" ? credential : minted);
      if (!valid.valid) expect.unreachable();
      if (isAccepted) writeVerifyJson(verificationOf(valid, "issuer"));
      const verdict = { ...limited(valid, { statuses: [denied], denied }), ...(isStale && { isStale }) };
      const response = verificationOf(verdict, "issuer");
      const message = create(VerifyApiKeyResponseSchema, response);
      expect(message).toMatchObject({ isValid: false, keyId, limits: [{ exceeded: true }] });
      const json = toJson(VerifyApiKeyResponseSchema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
      expect(writeVerifyJson(response)).toBe(JSON.stringify(json));
      expect(fromBinary(VerifyApiKeyResponseSchema, writeVerifyProto(response))).toEqual(message);
      if (isAccepted)
        expect(JSON.parse(writeVerifyJson(verificationOf(valid, "issuer")))).toHaveProperty("is_valid", true);
    }),
    { numRuns: 100 },
  );
});
