import { createRegistry } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { send } from "./client.ts";
import { serve, setFields, type TestServer, unaryMethodsOf } from "./server.ts";

const services = [ApiKeysService, DerivedKeysService, ImportedApiKeysService, IssuedApiKeysService, SelfServiceService];
const methods = services.flatMap(unaryMethodsOf);
const types = createRegistry(...methods.map(({ input }) => input));

let server: TestServer;

beforeAll(async () => {
  server = await serve(methods);
});

afterAll(() => server.fastify.close());

const admin = "/v2alpha1/admin";
const id = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";
const filter = 'actor_id="u 1" AND status=KEY_STATUS_ACTIVE';
const page = `page_size=10&filter=${encodeURIComponent(filter)}`;

/** Part 4 of the interface specification, and the added endpoints. */
const endpoints = [
  [
    `POST ${admin}/issuedApiKeys`,
    { name: "n", actor_id: "a", metadata: { team: "x" } },
    "CreateIssuedApiKey",
    { name: "n", actor_id: "a", metadata: { team: "x" } },
  ],
  [`GET ${admin}/issuedApiKeys/${id}`, undefined, "GetIssuedApiKey", { key_id: id }],
  [`GET ${admin}/issuedApiKeys?${page}`, undefined, "ListIssuedApiKeys", { page_size: 10, filter }],
  [
    `PATCH ${admin}/issuedApiKeys/${id}?update_mask=name,scopes`,
    { issued_api_key: { key_id: id, name: "n", scopes: [] } },
    "UpdateIssuedApiKey",
    { issued_api_key: { key_id: id, name: "n" }, update_mask: "name,scopes" },
  ],
  [
    `PATCH ${admin}/issuedApiKeys/${id}`,
    { issued_api_key: { key_id: id, scopes: [] } },
    "UpdateIssuedApiKey",
    { issued_api_key: { key_id: id }, update_mask: "scopes" },
  ],
  [
    `PATCH ${admin}/issuedApiKeys/${id}`,
    { key_id: id, name: "n" },
    "UpdateIssuedApiKey",
    { issued_api_key: { key_id: id, name: "n" }, update_mask: "name" },
  ],
  [`POST ${admin}/issuedApiKeys/${id}:rotate`, {}, "RotateIssuedApiKey", { key_id: id }],
  [`POST ${admin}/issuedApiKeys/${id}:rotate`, undefined, "RotateIssuedApiKey", { key_id: id }],
  [`POST ${admin}/importedApiKeys`, { raw_key: "r" }, "CreateImportedApiKey", { raw_key: "r" }],
  [
    `POST ${admin}/importedApiKeys:batchCreate`,
    { requests: [{ rawKey: "r" }] },
    "BatchCreateImportedApiKeys",
    { requests: [{ raw_key: "r" }] },
  ],
  [`GET ${admin}/importedApiKeys/${id}`, undefined, "GetImportedApiKey", { key_id: id }],
  [`GET ${admin}/importedApiKeys?${page}`, undefined, "ListImportedApiKeys", { page_size: 10, filter }],
  [
    `PATCH ${admin}/importedApiKeys/${id}`,
    { name: "n" },
    "UpdateImportedApiKey",
    { imported_api_key: { key_id: id, name: "n" }, update_mask: "name" },
  ],
  [`DELETE ${admin}/importedApiKeys/${id}`, undefined, "DeleteImportedApiKey", { key_id: id }],
  [
    `POST ${admin}/apiKeys:derive`,
    { credential: "c", algorithm: "TOKEN_ALGORITHM_JWT" },
    "DeriveToken",
    { credential: "c", algorithm: "TOKEN_ALGORITHM_JWT" },
  ],
  ["GET /v2alpha1/derivedKeys/jwks.json", undefined, "GetJwks", {}],
  [`POST ${admin}/apiKeys:verify`, { credential: "c" }, "VerifyApiKey", { credential: "c" }],
  [`GET ${admin}/apiKeys/${id}`, undefined, "GetApiKey", { key_id: id }],
  [`GET ${admin}/apiKeys?page_size=2`, undefined, "ListApiKeys", { page_size: 2 }],
  [`POST ${admin}/apiKeys/${id}:disable`, { reason: "r" }, "DisableApiKey", { key_id: id, reason: "r" }],
  [
    `POST ${admin}/issuedApiKeys/${id}:disable`,
    undefined,
    "DisableApiKey",
    { key_id: id, collection: "issuedApiKeys" },
  ],
  [`POST ${admin}/apiKeys/${id}:enable`, {}, "EnableApiKey", { key_id: id }],
  [`POST ${admin}/apiKeys:explain`, { credential: "c" }, "ExplainApiKey", { credential: "c" }],
  [
    `POST ${admin}/apiKeys:batchVerify`,
    { requests: [{ credential: "c" }, {}] },
    "BatchVerifyApiKeys",
    { requests: [{ credential: "c" }, {}] },
  ],
  [
    `POST ${admin}/apiKeys/${id}:revoke`,
    { reason: "REVOCATION_REASON_KEY_COMPROMISE" },
    "RevokeApiKey",
    { key_id: id, reason: "REVOCATION_REASON_KEY_COMPROMISE" },
  ],
  [`POST ${admin}/issuedApiKeys/${id}:revoke`, {}, "RevokeApiKey", { key_id: id, collection: "issuedApiKeys" }],
  [
    `POST ${admin}/importedApiKeys/${id}:revoke`,
    undefined,
    "RevokeApiKey",
    { key_id: id, collection: "importedApiKeys" },
  ],
  [`POST ${admin}/apiKeys:bulkRevoke`, { filter: 'name="k"' }, "BulkRevokeApiKeys", { filter: 'name="k"' }],
  [`POST ${admin}/apiKeys:bulkDisable`, { filter: 'name="k"' }, "BulkDisableApiKeys", { filter: 'name="k"' }],
  ["POST /v2alpha1/apiKeys:selfRevoke", { credential: "c" }, "SelfRevokeApiKey", { credential: "c" }],
] as const;

describe("Keyhold's own endpoints", () => {
  test.each(endpoints)("%s %j is %s", async (line, body, rpc, fields) => {
    const answer = await send(server.port, line, { body });
    expect(answer.status, answer.text).toBe(200);
    const call = server.invoked.pop();
    expect(call?.rpc).toBe(rpc);
    const desc = types.getMessage(call?.request.$typeName ?? "");
    if (call === undefined || desc === undefined) throw new Error("nothing was invoked");
    expect(setFields(desc, call.request)).toEqual(fields);
  });

  test("every RPC has an endpoint in the table", () => {
    const reached = new Set(endpoints.map(([, , rpc]) => rpc));
    expect([...reached].toSorted()).toEqual(methods.map(({ name }) => name).toSorted());
  });

  test.each([
    [
      "POST",
      `${admin}/importedApiKeys/${id}:revoke`,
      { collection: "issuedApiKeys" },
      "collection: is not the same in the body as in the path",
    ],
    [
      "POST",
      `${admin}/importedApiKeys:batchCreate`,
      { requests: [{}, { metadata: { a: 1 } }] },
      "requests[1].metadata.a: must be a string",
    ],
    [
      "PATCH",
      `${admin}/issuedApiKeys/${id}`,
      { scope: [] },
      "issued_api_key.scope: is no known field; did you mean scopes?",
    ],
    [
      "GET",
      `${admin}/issuedApiKeys?pagesize=1`,
      undefined,
      "pagesize: is no known query field; did you mean page_size?",
    ],
  ])("%s %s %j is refused", async (method, path, body, message) => {
    const answer = await send(server.port, `${method} ${path}`, { body });
    expect(answer.json().error).toMatchObject({ code: 400, message });
  });
});
