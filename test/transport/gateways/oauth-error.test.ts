import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CODES, toConnectError } from "../../../src/api/errors.ts";
import { type ErrorCode, KeyholdError } from "../../../src/domain/errors.ts";
import { oauthError } from "../../../src/transport/gateways/introspect.ts";
import { HTTP_ERRORS, HttpError, type HttpErrorReason } from "../../../src/transport/wire/http-error.ts";
import { table } from "../../support/conformance.ts";

const NAMES = ["invalid_request", "invalid_client", "insufficient_scope", "temporarily_unavailable", "server_error"];

const ALL = table([
  ...(Object.keys(CODES) as ErrorCode[]).map((code) => [code, toConnectError(new KeyholdError(code, "m"))] as const),
  ...(Object.keys(HTTP_ERRORS) as HttpErrorReason[]).map((reason) => [reason, new HttpError(reason)] as const),
  ["another error", toConnectError(new Error("a secret"))] as const,
]);

test.each(ALL)("%s has the form of OAuth, and is no verdict", (_, error) => {
  const { code, headers, body } = oauthError(error, "a");
  const { error: name, error_description: description, ...others } = JSON.parse(body);
  expect(NAMES).toContain(name);
  expect(["server_error", "temporarily_unavailable"].includes(name)).toBe(code >= 500 || code === 429);
  expect([typeof description, others]).toEqual(["string", {}]);
  expect(code).toBeGreaterThanOrEqual(400);
  expect(headers).toMatchObject({ "cache-control": "no-store", "content-length": String(Buffer.byteLength(body)) });
  expect("www-authenticate" in headers).toBe([Code.Unauthenticated, Code.PermissionDenied].includes(error.code));
});

test.each([
  ["OVERLOADED", 503, "temporarily_unavailable"],
  ["DATABASE_UNAVAILABLE", 503, "temporarily_unavailable"],
  ["AUTHORITY_UNAVAILABLE", 503, "temporarily_unavailable"],
  ["RATE_LIMITED", 429, "temporarily_unavailable"],
  ["INTERNAL", 500, "server_error"],
] as const)("%s has the status %i and is %s", (reason, status, name) => {
  const { code, headers, body } = oauthError(toConnectError(new KeyholdError(reason, "m")), "a");
  expect([code, JSON.parse(body).error]).toEqual([status, name]);
  expect(headers["retry-after"]).toBe(status === 500 ? undefined : "1");
});

test("a description has only the characters that OAuth allows", () => {
  const error = toConnectError(new KeyholdError("INVALID_ARGUMENT", 'a "b" \\ \n \u00e9 \u{1f600} c'));
  expect(JSON.parse(oauthError(error, "a").body).error_description).toMatch(/^a 'b' \? \? \? \?+ c$/);
});
