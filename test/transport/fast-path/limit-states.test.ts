import { create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { VerifyApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { limitStatuses } from "../../../src/api/v2alpha1/rate-limits.ts";
import type { LimitStatus } from "../../../src/domain/rate-limit.ts";
import { encodeStates, writeStatesJson } from "../../../src/transport/fast-path/limit-states.ts";
import { anyLimit } from "../../support/rate-limits.ts";

const anyState: fc.Arbitrary<LimitStatus> = fc.record({
  limit: anyLimit,
  cost: fc.constant(1),
  remaining: fc.option(fc.integer({ min: 0, max: 1e9 })),
  resetTime: fc.option(fc.double({ min: 1_001, max: 1e13, noNaN: true })),
  retryAfter: fc.option(fc.double({ min: 0, max: 1e11, noNaN: true })),
  isExceeded: fc.boolean(),
});

/** What a verification that is admitted has. */
const usual = anyState.map((state) => ({ ...state, retryAfter: null, isExceeded: false }));

test("states of limits are encoded like by the library", () => {
  const states = fc.array(fc.oneof(anyState, usual, usual), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(
      fc.oneof(
        states,
        usual.map((state) => [state]),
      ),
      (states) => {
        const message = create(VerifyApiKeyResponseSchema, { limits: limitStatuses(states) });
        const json = toJson(VerifyApiKeyResponseSchema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
        expect(`[${writeStatesJson(states)}]`).toBe(JSON.stringify(Reflect.get(Object(json), "limits")));
        const bytes = encodeStates(states);
        expect(fromBinary(VerifyApiKeyResponseSchema, bytes)).toEqual(message);
        expect(Buffer.from(bytes)).toEqual(Buffer.from(toBinary(VerifyApiKeyResponseSchema, message)));
      },
    ),
    { numRuns: 1_000 },
  );
});
