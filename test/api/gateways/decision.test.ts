import { expect, test } from "vitest";
import {
  failed,
  type GatewayDecision,
  malformed,
  rejected,
  UNAUTHENTICATED,
} from "../../../src/api/gateways/decision.ts";
import { type ErrorCode, KeyholdError } from "../../../src/domain/errors.ts";
import { invalid, type RejectionReason } from "../../../src/domain/verdict.ts";

const RETRY_INFO = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retry_delay: "1s" };

/** Returns the status, the challenge, the delay, and the error without what is common to all. */
function partsOf({ status, headers, body, identity }: GatewayDecision) {
  const { "www-authenticate": challenge, "retry-after": retryAfter, ...others } = Object.fromEntries(headers);
  expect(others).toEqual({ "cache-control": "no-store", "content-type": "application/json; charset=utf-8" });
  expect(identity).toBe(undefined);
  const { code, message, status: name, details } = JSON.parse(body).error;
  const [{ "@type": type, domain, reason, metadata }, ...more] = details;
  expect([code, type, domain]).toEqual([status, "type.googleapis.com/google.rpc.ErrorInfo", "keyhold"]);
  expect(more).toEqual(retryAfter === undefined ? [] : [RETRY_INFO]);
  return [status, name, message, reason, metadata, challenge, retryAfter];
}

const BEARER = 'Bearer realm="keyhold"';

test("a request without a credential is challenged", () => {
  expect(partsOf(UNAUTHENTICATED)).toEqual([
    ...[401, "UNAUTHENTICATED", "no credential was sent", "CREDENTIAL_INVALID", {}, BEARER, undefined],
  ]);
});

test("a malformed request is challenged, in characters that a header can carry", () => {
  const challenge = `${BEARER}, error="invalid_request", error_description="a \\"b\\" \\\\ ?"`;
  expect(partsOf(malformed('a "b" \\ \u00e9'))).toEqual([
    ...[400, "INVALID_ARGUMENT", 'a "b" \\ \u00e9', "INVALID_ARGUMENT", {}, challenge, undefined],
  ]);
});

const REJECTIONS: readonly (readonly [RejectionReason, number, string, string | undefined])[] = [
  ["NOT_FOUND", 401, "UNAUTHENTICATED", `${BEARER}, error="invalid_token", error_description="m"`],
  ["EXPIRED", 401, "UNAUTHENTICATED", `${BEARER}, error="invalid_token", error_description="m"`],
  ["INSUFFICIENT_SCOPE", 403, "PERMISSION_DENIED", `${BEARER}, error="insufficient_scope", scope="a b"`],
  ["IP_NOT_ALLOWED", 403, "PERMISSION_DENIED", undefined],
  ["AUDIENCE_MISMATCH", 403, "PERMISSION_DENIED", undefined],
];

test.each(REJECTIONS)("a credential that is rejected as %s: %i", (reason, status, name, challenge) => {
  const error = status === 401 ? "CREDENTIAL_INVALID" : "CREDENTIAL_NOT_PERMITTED";
  expect(partsOf(rejected(invalid(reason, "m"), ["a", "b"]))).toEqual([
    ...[status, name, "m", error, { error_code: `VERIFICATION_ERROR_${reason}` }, challenge, undefined],
  ]);
});

test("a verification that failed is no verdict", () => {
  expect(partsOf(rejected(invalid("INTERNAL", "m"), []))).toEqual([
    ...[503, "UNAVAILABLE", "m", "INTERNAL", {}, undefined, "1"],
  ]);
});

const FAILURES: readonly (readonly [ErrorCode, ErrorCode])[] = [
  ["OVERLOADED", "OVERLOADED"],
  ["DATABASE_UNAVAILABLE", "DATABASE_UNAVAILABLE"],
  ["CREDENTIAL_INVALID", "CALLER_NOT_PERMITTED"],
  ["CALLER_NOT_PERMITTED", "CALLER_NOT_PERMITTED"],
];

test.each(FAILURES)("a call that fails with %s is unavailability", (code, reason) => {
  expect(partsOf(failed(new KeyholdError(code, "m")))).toEqual([
    ...[503, "UNAVAILABLE", "m", reason, {}, undefined, "1"],
  ]);
});

test("an unexpected error tells nothing", () => {
  expect(partsOf(failed(new Error("a secret")))).toEqual([
    ...[503, "UNAVAILABLE", "internal error", "INTERNAL", {}, undefined, "1"],
  ]);
});

test("a call that the gateway made wrongly is the client's to see", () => {
  expect(partsOf(failed(new KeyholdError("INVALID_ARGUMENT", "m")))[0]).toBe(400);
});
