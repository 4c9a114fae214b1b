import {
  type ApiKeysService,
  type VerifyApiKeyRequest,
  VerifyApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalid, type Verdict } from "../../domain/verdict.ts";
import { andThen } from "../../lib/maybe-promise.ts";
import type { ApiContext, Handler } from "../handler.ts";
import { violationsOf } from "../validation.ts";
import { cacheModeOf } from "./cache-mode.ts";
import { verificationBy } from "./verification.ts";

/** A credential that violates a rule of the request gets that as its verdict and does not affect the others. */
export function batchVerifyApiKeys({
  verifyAll,
  issuer,
}: ApiContext): Handler<typeof ApiKeysService.method.batchVerifyApiKeys> {
  const verification = verificationBy(issuer);
  return ({ requests }, _principal, call) => {
    const broken = requests.map(validateItem);
    const credentials = requests.flatMap(({ credential }, index) => (broken[index] === null ? credential : []));
    return andThen(verifyAll(credentials, cacheModeOf(call)), (verdicts) => {
      const next = verdicts.values();
      const results = broken.map((verdict) => verdict ?? next.next().value ?? invalid("INTERNAL", "no verdict"));
      return { results: results.map(verification) };
    });
  };
}

function validateItem(request: VerifyApiKeyRequest): Verdict | null {
  const [violation] = violationsOf(VerifyApiKeyRequestSchema, request);
  return violation === undefined ? null : invalid("INVALID_FORMAT", `${violation.field}: ${violation.description}`);
}
