import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
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
