import type { DescMethod } from "@bufbuild/protobuf";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test } from "vitest";
import { CODES } from "../../../src/api/errors.ts";
import { rowOf, SERVICES } from "../../../src/api/v2alpha1/rpcs.ts";
import { type RestMethod, readRestRules } from "../../../src/transport/rest/http-rule.ts";
import { table } from "../../support/conformance.ts";
import type { Json } from "../../support/rest.ts";
import { contentOf, document, examples, operations, validator } from "./document.ts";

const METHODS = SERVICES.flatMap(({ methods }) => methods as readonly DescMethod[]).filter(
  (method): method is RestMethod => method.methodKind === "unary" || method.methodKind === "server_streaming",
);

/** Replaces the variables of a path, but keeps their literal segments. */
const shapeOf = (path: string) => path.replace(/\{\w+=([^{}*]+)\}/g, "$1").replace(/\{[^}]*\}/g, "{}");

test("the document is valid OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  expect(document.openapi).toMatch(/^3\.1\./);
});

test("every route has a path, and every path a route", () => {
  const routes = METHODS.flatMap(readRestRules).map(
    ({ httpMethod, template }) => `${httpMethod} ${shapeOf(template.text)}`,
  );
  const paths = operations.map(({ httpMethod, path }) => `${httpMethod} ${shapeOf(path)}`);
  const others = ["POST /v2alpha1/introspect", "GET /health/alive", "GET /health/ready"];
  expect(paths.sort()).toEqual([...routes, ...others].sort());
  // It takes every method, in which no client would call it.
  expect(document.info.description).toContain("`/v2alpha1/forwardAuth`");
  // Its responses are no JSON, and a path has any number of segments.
  expect(document.info.description).toContain("`/v2alpha1/audit/`");
});

test("operations have unique identifiers and their service as the tag", () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const tags = document.tags.map(({ name }: { name: string }) => name);
  expect(tags).toEqual([...SERVICES.map(({ name }) => name), "Introspection", "Health"]);
  for (const { operation } of operations) expect(tags).toContain(operation.tags[0]);
});

test.for(table(METHODS.map((method) => [`${method.parent.name}_${method.name}`, method] as const)))(
  "%s requires the credential and names the scope of the policy table",
  ([id, method]) => {
    const found = operations.find(({ operation }) => operation.operationId === id)?.operation;
    const policy = rowOf(method)?.policy;
    expect(found.security).toEqual(policy === "public" ? [] : [{ bearer: [] }]);
    const needed = policy === "authenticated" ? "any Keyhold scope" : `\`${policy}\``;
    if (policy !== "public") expect(found.description).toContain(needed);
  },
);

test("every error reason is listed with an operation", () => {
  const text = operations.map(({ operation }) => JSON.stringify(operation.responses)).join();
  expect(Object.keys(CODES).filter((reason) => !text.includes(`\`${reason}\``))).toEqual([]);
});

describe("an example", () => {
  test("exists for each error of an operation, except invalid arguments, unknown keys and conflicts of some", () => {
    const without = operations.flatMap(({ operation }) =>
      Object.entries<Json>(operation.responses).filter(
        ([status, response]) => /^(401|413|415|429|5..)$/.test(status) && contentOf(response).examples === undefined,
      ),
    );
    expect(without.filter(([, { content }]) => JSON.stringify(content).includes("ErrorResponse"))).toEqual([]);
  });

  test("exists for every operation: a valid request and, where one is possible, an invalid one", () => {
    const succeed = examples.filter(({ status }) => status === 200).map(({ operation }) => operation.operationId);
    const fail = examples.filter(({ status }) => status >= 400).map(({ operation }) => operation.operationId);
    const ids = operations.map(({ operation }) => operation.operationId);
    // Its response is not JSON.
    expect(ids.filter((id) => !succeed.includes(id))).toEqual(["AuditService_WatchAuditEvents"]);
    expect(ids.filter((id) => !fail.includes(id))).toEqual([
      "HmacKeysService_ListHmacKeys",
      "ApiKeysService_RevokeIssuedApiKey",
      "ApiKeysService_RevokeImportedApiKey",
      "DerivedKeysService_GetJwks",
      "AuditService_GetAuditCheckpoint",
      "WebhookEndpointsService_ListWebhookEndpoints",
      "CallersService_WhoAmI",
      "Health_Alive",
    ]);
  });

  test.for(table(examples.map((example) => [`${example.operation.operationId} ${example.name}`, example] as const)))(
    "%s matches its schemas",
    ([, { operation, body, status, response }]) => {
      const isAnswer = validator(contentOf(operation.responses[status]).schema);
      expect(isAnswer(response) ? [] : isAnswer.errors).toEqual([]);
      if (body === undefined || status === 400) return;
      const isRequest = validator(contentOf(operation.requestBody).schema);
      expect(isRequest(body) ? [] : isRequest.errors).toEqual([]);
    },
  );
});

test("the example of a stream has its responses as data, and their tokens as ids", () => {
  const { operation } = operations.find(({ path }) => path.endsWith(":watch")) ?? {};
  const { schema, examples } = operation.responses[200].content["text/event-stream"];
  const text: string = examples.watch.value;
  const [[, id, data] = []] = text.matchAll(/^id: (.*)\ndata: (.*)\n\n/gm);
  const response = JSON.parse(data ?? "");
  expect(response.resume_token).toBe(id);
  const isResponse = validator({ $ref: /#\/components\/schemas\/\w+/.exec(schema.description)?.[0] });
  expect(isResponse(response) ? [] : isResponse.errors).toEqual([]);
});
