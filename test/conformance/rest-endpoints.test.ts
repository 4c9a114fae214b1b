import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { readRestRules } from "../../src/transport/rest/http-rule.ts";
import { expectRefused, newRawKey, succeeded, table, UUID_V7, useService, withQuery } from "../support/conformance.ts";
import { type Json, paths } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;
const text = expect.stringMatching(/./);

/** Resources for the calls of the table. */
interface Resources {
  readonly issued: { readonly id: string; readonly secret: string };
  readonly imported: { readonly id: string; readonly rawKey: string };
  readonly jwt: string;
}

let resources: Resources;

beforeAll(async () => {
  const issued = succeeded(
    await rest("POST", paths.issued, { name: "n", actor_id: "user_1", scopes: ["read", "write"] }),
  );
  const rawKey = newRawKey();
  const imported = succeeded(await rest("POST", paths.imported, { raw_key: rawKey, name: "n", actor_id: "user_1" }));
  const derived = succeeded(
    await rest("POST", `${paths.keys}:derive`, {
      credential: issued.secret,
      algorithm: "TOKEN_ALGORITHM_JWT",
      ttl: "1h",
    }),
  );
  const { key_id: id } = issued.issued_api_key;
  resources = {
    issued: { id, secret: issued.secret },
    imported: { id: imported.key_id, rawKey },
    jwt: derived.token.token,
  };
});

interface Endpoint {
  /** Number in the interface specification, part 4. */
  readonly number: number;
  readonly method: string;
  /** The specification's path, with the variable names of the protos. */
  readonly template: string;
  /** The query string. */
  readonly query?: Record<string, string>;
  readonly body?: (resources: Resources) => Json;
  readonly headers?: Record<string, string>;
  /** Required members of the response. */
  readonly answer: (resources: Resources) => Json;
}

const V = "/v2alpha1";

const ENDPOINTS: readonly Endpoint[] = [
  {
    number: 1,
    method: "POST",
    template: `${V}/admin/issuedApiKeys`,
    body: () => ({ name: "ci", actor_id: "user_2", scopes: ["read"], ttl: "24h", metadata: { team: "core" } }),
    answer: () => ({
      secret: text,
      issued_api_key: {
        key_id: expect.stringMatching(UUID_V7),
        name: "ci",
        actor_id: "user_2",
        scopes: ["read"],
        status: "KEY_STATUS_ACTIVE",
      },
    }),
  },
  {
    number: 2,
    method: "GET",
    template: `${V}/admin/issuedApiKeys/{key_id}`,
    answer: ({ issued }) => ({ key_id: issued.id, actor_id: "user_1", status: "KEY_STATUS_ACTIVE" }),
  },
  {
    number: 3,
    method: "GET",
    template: `${V}/admin/issuedApiKeys`,
    query: { page_size: "10", filter: 'actor_id="user_1" AND status=KEY_STATUS_ACTIVE' },
    answer: ({ issued }) => ({ issued_api_keys: [{ key_id: issued.id }], next_page_token: "" }),
  },
  {
    number: 4,
    method: "PATCH",
    template: `${V}/admin/issuedApiKeys/{key_id}`,
    query: { update_mask: "name,scopes" },
    body: ({ issued }) => ({ issued_api_key: { key_id: issued.id, name: "new", scopes: ["read"] } }),
    answer: ({ issued }) => ({ key_id: issued.id, name: "new", scopes: ["read"] }),
  },
  {
    number: 5,
    method: "POST",
    template: `${V}/admin/issuedApiKeys/{key_id}:rotate`,
    body: () => ({}),
    answer: ({ issued }) => ({ secret: text, issued_api_key: { key_id: issued.id } }),
  },
  {
    number: 6,
    method: "POST",
    template: `${V}/admin/importedApiKeys`,
    body: () => ({ raw_key: newRawKey(), name: "old", actor_id: "user_2", scopes: ["read"] }),
    answer: () => ({ key_id: expect.stringMatching(UUID_V7) }),
  },
  {
    number: 7,
    method: "POST",
    template: `${V}/admin/importedApiKeys:batchCreate`,
    body: () => ({ requests: [{ raw_key: newRawKey(), name: "old", actor_id: "user_2", scopes: ["read"] }] }),
    answer: () => ({ results: [{ index: 0, imported_api_key: { key_id: expect.stringMatching(UUID_V7) } }] }),
  },
  {
    number: 8,
    method: "GET",
    template: `${V}/admin/importedApiKeys/{imported_key_id}`,
    answer: ({ imported }) => ({ key_id: imported.id, actor_id: "user_1", status: "KEY_STATUS_ACTIVE" }),
  },
  {
    number: 9,
    method: "GET",
    template: `${V}/admin/importedApiKeys`,
    query: { page_size: "10", filter: 'actor_id="user_1"' },
    answer: ({ imported }) => ({ imported_api_keys: [{ key_id: imported.id }], next_page_token: "" }),
  },
  {
    number: 11,
    method: "POST",
    template: `${V}/admin/apiKeys:derive`,
    body: ({ imported }) => ({
      credential: imported.rawKey,
      algorithm: "TOKEN_ALGORITHM_JWT",
      ttl: "30m",
      custom_claims: { tier: "gold" },
    }),
    answer: () => ({ token: { token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/) } }),
  },
  {
    number: 11,
    method: "POST",
    template: `${V}/admin/apiKeys:derive`,
    body: ({ imported }) => ({ credential: imported.rawKey, algorithm: "TOKEN_ALGORITHM_MACAROON", ttl: "1h" }),
    answer: () => ({ token: { token: expect.stringMatching(/^[\w-]+$/) } }),
  },
  {
    number: 12,
    method: "GET",
    template: `${V}/derivedKeys/jwks.json`,
    answer: () => ({ keys: [{ kty: "OKP", crv: "Ed25519", kid: text, x: text }] }),
  },
  {
    number: 13,
    method: "POST",
    template: `${V}/admin/apiKeys:verify`,
    body: ({ imported }) => ({ credential: imported.rawKey }),
    answer: ({ imported }) => ({ is_valid: true, key_id: imported.id }),
  },
  {
    number: 13,
    method: "POST",
    template: `${V}/admin/apiKeys:verify`,
    headers: { "cache-control": "no-cache" },
    body: ({ imported }) => ({ credential: imported.rawKey }),
    answer: ({ imported }) => ({ is_valid: true, key_id: imported.id }),
  },
  {
    number: 14,
    method: "POST",
    template: `${V}/admin/apiKeys:batchVerify`,
    body: ({ imported, jwt }) => ({ requests: [{ credential: imported.rawKey }, { credential: jwt }] }),
    answer: ({ imported }) => ({ results: [{ is_valid: true, key_id: imported.id }, { is_valid: false }] }),
  },
  {
    number: 15,
    method: "POST",
    template: `${V}/admin/apiKeys/{key_id}:revoke`,
    body: () => ({ reason: "REVOCATION_REASON_KEY_COMPROMISE" }),
    answer: ({ issued }) => ({ key_id: issued.id, status: "KEY_STATUS_REVOKED" }),
  },
  {
    number: 16,
    method: "POST",
    template: `${V}/apiKeys:selfRevoke`,
    body: ({ imported }) => ({ credential: imported.rawKey, reason: "REVOCATION_REASON_KEY_COMPROMISE" }),
    answer: ({ imported }) => ({ key_id: imported.id, status: "KEY_STATUS_REVOKED" }),
  },
  {
    number: 10,
    method: "DELETE",
    template: `${V}/admin/importedApiKeys/{imported_key_id}`,
    answer: () => ({}),
  },
  { number: 17, method: "GET", template: "/health/alive", answer: () => ({ status: "ok" }) },
  { number: 18, method: "GET", template: "/health/ready", answer: () => ({ status: "ok" }) },
];

/** Endpoints beyond the specification. */
const ADDITIONS = [
  `GET ${V}/admin/apiKeys`,
  `GET ${V}/admin/apiKeys/{key_id}`,
  `POST ${V}/admin/apiKeys:bulkRevoke`,
  `POST ${V}/admin/apiKeys:bulkDisable`,
  ...["apiKeys", "issuedApiKeys", "importedApiKeys"].flatMap((collection) =>
    ["disable", "enable"].map((verb) => `POST ${V}/admin/${collection}/{key_id}:${verb}`),
  ),
  `POST ${V}/admin/apiKeys:explain`,
  `PATCH ${V}/admin/importedApiKeys/{key_id}`,
  `POST ${V}/admin/hmacKeys`,
  `GET ${V}/admin/hmacKeys`,
  `DELETE ${V}/admin/hmacKeys/{hmac_key_id}`,
  `POST ${V}/admin/issuedApiKeys/{key_id}:revoke`,
  `POST ${V}/admin/importedApiKeys/{key_id}:revoke`,
];

describe("the specification's endpoint", () => {
  test.each(table(ENDPOINTS))(
    "$number is $method $template",
    async ({ method, template, query, body, headers, answer }) => {
      const path = template
        .replace("{key_id}", resources.issued.id)
        .replace("{imported_key_id}", resources.imported.id);
      const url = query === undefined ? path : withQuery(path, query);
      const answered = await rest(method, url, body?.(resources), headers);
      expect(succeeded(answered)).toMatchObject(answer(resources));
      expect(answered.headers.get("content-type")).toMatch(/^application\/json/);
    },
  );

  test("table has all 18 endpoints", () => {
    const numbers = new Set(ENDPOINTS.map(({ number }) => number));
    expect([...numbers].sort((a, b) => a - b)).toEqual(Array.from({ length: 18 }, (_, index) => index + 1));
  });
});

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

test("the service has the paths of the specification and the listed additions, and no other", () => {
  const anonymous = (template: string) => template.replaceAll(/\{[^}]*\}/g, "{}");
  const methods = SERVICES.flatMap((service): readonly DescMethod[] => service.methods);
  const served = methods.filter(isUnary).flatMap((method) =>
    readRestRules(method).map(({ httpMethod, template }) => {
      const path = template.text.replace(/\{collection=(\w+)\}/, "$1");
      return anonymous(`${httpMethod} ${path}`);
    }),
  );
  const specified = ENDPOINTS.filter(({ template }) => template.startsWith(V)).map(
    ({ method, template }) => `${method} ${template}`,
  );
  const expected = new Set([...specified, ...ADDITIONS].map(anonymous));
  expect(served.sort()).toEqual([...expected].sort());
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
