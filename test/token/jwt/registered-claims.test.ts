import { expect, test } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import { checkRegisteredClaims, REGISTERED_CLAIMS } from "../../../src/token/jwt/registered-claims.ts";

test("the list is that of the registry", () => {
  expect(REGISTERED_CLAIMS.size).toBe(163);
  const some = "iss aud email_verified groups cnf may_act authorization_details _sd_alg ... stpl".split(" ");
  expect(some.filter((name) => !REGISTERED_CLAIMS.has(name))).toEqual([]);
});

test("a registered claim is rejected by name unless it is allowed", () => {
  const claims = { tenant: "t", email: "a@b.example", groups: [], Email: "", __proto__: 1 };
  expect(violations(claims, [])).toEqual(["custom_claims.email", "custom_claims.groups"]);
  expect(violations(claims, ["email"])).toEqual(["custom_claims.groups"]);
  expect(violations(claims, ["groups", "email"])).toEqual([]);
});

test("the error names the variable that allows it", () => {
  expect(() => checkRegisteredClaims({ email: "" }, new Set())).toThrow(/KEYHOLD_ALLOWED_CLAIMS/);
});

function violations(claims: Record<string, never[] | string | number>, allowed: readonly string[]): string[] {
  try {
    checkRegisteredClaims(claims, new Set(allowed));
    return [];
  } catch (error) {
    if (error instanceof KeyholdError) return error.violations.map(({ field }) => field);
    throw error;
  }
}
