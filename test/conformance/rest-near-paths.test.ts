import { expect, test } from "vitest";
import { expectRefused, table, useService } from "../support/conformance.ts";
import { paths } from "../support/rest.ts";

const { rest } = useService();

const NEAR = [
  ["POST", `${paths.keys}/x:revok`, "/v2alpha1/admin/apiKeys/{key_id}:revoke"],
  ["POST", `${paths.keys}%3Averify`, "/v2alpha1/admin/apiKeys:verify"],
  ["POST", `${paths.keys}/x%3Arevoke`, "/v2alpha1/admin/apiKeys/{key_id}:revoke"],
  ["GET", `${paths.issued}/`, "/v2alpha1/admin/issuedApiKeys"],
  ["GET", `${paths.imported}/x/`, "/v2alpha1/admin/importedApiKeys/{key_id}"],
] as const;

test.each(table(NEAR))("%s %s is 404, and the message names %s", async (method, path, near) => {
  const answer = await rest(method, path, method === "POST" ? {} : undefined);
  expectRefused(answer, { code: 404, status: "NOT_FOUND", reason: "PATH_NOT_FOUND" });
  expect(answer.body.error.message).toContain(`; did you mean ${near}?`);
});
