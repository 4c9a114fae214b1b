import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { VerificationError, VerifyApiKeyResponseSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { createKeyVerifier } from "../../src/verifier/index.ts";

test.each([
  [VerificationError.INTERNAL, "UNAVAILABLE", 2],
  [VerificationError.NOT_FOUND, "NOT_FOUND", 1],
])(
  "the verdict %i is %s and costs %i calls for two verifications: INTERNAL is never cached",
  async (errorCode, reason, calls) => {
    let count = 0;
    const fetch = async () => {
      count++;
      const body = toBinary(
        VerifyApiKeyResponseSchema,
        create(VerifyApiKeyResponseSchema, { isValid: false, errorCode }),
      );
      return new Response(body, { headers: { "content-type": "application/proto" } });
    };
    const { verify } = createKeyVerifier({ baseUrl: "http://127.0.0.1:1", token: "t", fetch, maxAgeMs: 60_000 });
    for (let i = 0; i < 2; i++) expect(await verify("a-credential")).toMatchObject({ ok: false, reason });
    expect(count).toBe(calls);
  },
);
