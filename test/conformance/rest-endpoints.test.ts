import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { readRestRules } from "../../src/transport/rest/http-rule.ts";
import { expectRefused, table, useService } from "../support/conformance.ts";
import { paths } from "../support/rest.ts";

const { rest } = useService();

/** The paths of each RPC, from the interface specification and beyond it. `protocols.test.ts` calls each RPC over REST. */
const ENDPOINTS: Readonly<Record<string, readonly string[]>> = {
  CreateIssuedApiKey: ["POST /v2alpha1/admin/issuedApiKeys"],
  GetIssuedApiKey: ["GET /v2alpha1/admin/issuedApiKeys/{key_id}"],
  ListIssuedApiKeys: ["GET /v2alpha1/admin/issuedApiKeys"],
  UpdateIssuedApiKey: ["PATCH /v2alpha1/admin/issuedApiKeys/{issued_api_key.key_id}"],
  RotateIssuedApiKey: ["POST /v2alpha1/admin/issuedApiKeys/{key_id}:rotate"],
  CreateImportedApiKey: ["POST /v2alpha1/admin/importedApiKeys"],
  BatchCreateImportedApiKeys: ["POST /v2alpha1/admin/importedApiKeys:batchCreate"],
  GetImportedApiKey: ["GET /v2alpha1/admin/importedApiKeys/{key_id}"],
  ListImportedApiKeys: ["GET /v2alpha1/admin/importedApiKeys"],
  UpdateImportedApiKey: ["PATCH /v2alpha1/admin/importedApiKeys/{imported_api_key.key_id}"],
  DeleteImportedApiKey: ["DELETE /v2alpha1/admin/importedApiKeys/{key_id}"],
  DeriveToken: ["POST /v2alpha1/admin/apiKeys:derive"],
  VerifyApiKey: ["POST /v2alpha1/admin/apiKeys:verify"],
  BatchVerifyApiKeys: ["POST /v2alpha1/admin/apiKeys:batchVerify"],
  ExplainApiKey: ["POST /v2alpha1/admin/apiKeys:explain"],
  GetApiKey: ["GET /v2alpha1/admin/apiKeys/{key_id}"],
  ListApiKeys: ["GET /v2alpha1/admin/apiKeys"],
  RevokeApiKey: ofCollections("revoke"),
  DisableApiKey: ofCollections("disable"),
  EnableApiKey: ofCollections("enable"),
  BulkRevokeApiKeys: ["POST /v2alpha1/admin/apiKeys:bulkRevoke"],
  BulkDisableApiKeys: ["POST /v2alpha1/admin/apiKeys:bulkDisable"],
  CreateHmacKey: ["POST /v2alpha1/admin/hmacKeys"],
  ListHmacKeys: ["GET /v2alpha1/admin/hmacKeys"],
  DeleteHmacKey: ["DELETE /v2alpha1/admin/hmacKeys/{hmac_key_id}"],
  SelfRevokeApiKey: ["POST /v2alpha1/apiKeys:selfRevoke"],
  GetJwks: ["GET /v2alpha1/derivedKeys/jwks.json"],
};

function ofCollections(verb: string): string[] {
  const collections = ["apiKeys", "issuedApiKeys", "importedApiKeys"];
  return collections.map((collection) => `POST /v2alpha1/admin/${collection}/{key_id}:${verb}`);
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

test("each RPC has these paths, and no other", () => {
  const pathsOf = (rpc: DescMethodUnary) =>
    readRestRules(rpc).map(({ httpMethod, template }) => {
      return `${httpMethod} ${template.text.replace(/\{collection=(\w+)\}/, "$1")}`;
    });
  const rpcs = SERVICES.flatMap(({ methods }): readonly DescMethod[] => methods).filter(isUnary);
  expect(Object.fromEntries(rpcs.map((rpc) => [rpc.name, pathsOf(rpc)]))).toEqual(ENDPOINTS);
});

const NOWHERE = [
  ["GET", "/v2alpha1/issuedApiKeys", "admin is part of the path"],
  ["POST", "/v2alpha1/apiKeys:verify", "admin is part of the path"],
  ["GET", "/v2alpha1/admin/derivedKeys/jwks.json", "the JWKS is public"],
  ["POST", "/v2alpha1/admin/apiKeys:selfRevoke", "self-revocation is public"],
  ["GET", "/admin/issuedApiKeys", "the version is part of the path"],
  ["GET", "/v2alpha2/admin/issuedApiKeys", "there is one version"],
  ["GET", "/v2alpha1/health/alive", "health has no version"],
  ["GET", "/v2alpha1/admin/issuedApiKeys/", "a path has no slash at its end"],
  ["GET", "/v2alpha1/admin/issuedapikeys", "case counts"],
  ["POST", "/v2alpha1/admin/apiKeys:rotate", "a verb of another resource"],
] as const;

describe("unknown paths are 404:", () => {
  test.each(table(NOWHERE))("%s %s: %s", async (method, path) => {
    const answer = await rest(method, path, method === "POST" ? {} : undefined);
    expectRefused(answer, { code: 404, status: "NOT_FOUND", reason: "PATH_NOT_FOUND" });
  });
});

const WRONG_METHODS = [
  ["DELETE", paths.issued, "GET, HEAD, POST"],
  ["PUT", `${paths.issued}/x`, "GET, HEAD, PATCH"],
  ["DELETE", `${paths.issued}/x`, "GET, HEAD, PATCH"],
  ["POST", `${paths.imported}/x`, "DELETE, GET, HEAD, PATCH"],
  ["GET", `${paths.keys}:verify`, "POST"],
  ["GET", `${paths.keys}/x:revoke`, "POST"],
  ["GET", paths.selfRevoke, "POST"],
  ["POST", paths.jwks, "GET, HEAD"],
] as const;

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

describe("a wrong method is 405 with the allowed methods:", () => {
  test.each(table(WRONG_METHODS))("%s %s takes %s", async (method, path, allow) => {
    const answer = await rest(method, path);
    expectRefused(answer, { code: 405, status: "UNIMPLEMENTED", reason: "METHOD_NOT_ALLOWED" });
    expect(answer.headers.get("allow")).toBe(allow);
  });
});
