import type { DescMethodUnary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { table } from "../support/conformance.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import type { Json } from "../support/rest.ts";
import { send } from "../support/wire.ts";

const suite = useProtocols();

const VERIFY = "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey";

function named(method: DescMethodUnary, name: string, typeName = method.parent.typeName): DescMethodUnary {
  return { ...method, name, parent: { ...method.parent, typeName } } as DescMethodUnary;
}

const { verifyApiKey } = ApiKeysService.method;

test.for([
  ["an unknown method", named(verifyApiKey, "VerifyNothing")],
  ["an unknown service", named(verifyApiKey, "VerifyApiKey", "keyhold.v2alpha1.NothingService")],
  ["an unknown version", named(verifyApiKey, "VerifyApiKey", "keyhold.v1.ApiKeysService")],
  ["a method in another case", named(verifyApiKey, "verifyApiKey")],
  ["a method that is described but not served", Health.method.list],
] as const)("%s is UNIMPLEMENTED to the clients of every protocol", async ([, method]) => {
  const rpcs = suite.protocols.filter(({ name }) => name !== "REST");
  expect(rpcs.length).toBeGreaterThanOrEqual(10);
  for (const { name, call } of rpcs) expect(await call(method, {}), name).toMatchObject({ code: "UNIMPLEMENTED" });
});

/** The form of all errors of the REST API. */
function refusal(code: number, status: string, reason: string): Json {
  const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "keyhold", metadata: {} };
  return { error: { code, message: expect.stringMatching(/./), status, details: [info] } };
}

/** Unknown paths of each part of the service. REST paths belong to REST for every content type. */
const NOWHERE = [
  "/keyhold.v2alpha1.ApiKeysService/Nothing",
  "/keyhold.v2alpha1.ApiKeysService",
  "/v2alpha1/nothing",
  "/nothing",
];

const CONTENT_TYPES = ["application/connect+json", "application/proto", "application/json", "text/plain"];

test.for(table(CONTENT_TYPES))("an unknown path is 404 in the REST error form for %s", async (type) => {
  for (const path of NOWHERE) {
    const answer = await fetch(suite.server.url + path, {
      method: "POST",
      headers: { "content-type": type },
      body: "{}",
    });
    expect(answer.status, path).toBe(404);
    expect(answer.headers.get("content-type"), path).toMatch(/^application\/json/);
    expect(await answer.json(), path).toEqual(refusal(404, "NOT_FOUND", "PATH_NOT_FOUND"));
  }
});

test("a malformed body does not change the response to an unknown path", async () => {
  for (const encoding of ["gzip", "identity"]) {
    const headers = { "content-type": "application/json", "content-encoding": encoding };
    const answer = await send(`${suite.server.url}/keyhold.v2alpha1.ApiKeysService/Nothing`, "POST", "{", headers);
    expect([answer.status, answer.body]).toEqual([404, refusal(404, "NOT_FOUND", "PATH_NOT_FOUND")]);
  }
});

test.for([
  "text/plain",
  "text/html",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/xml",
  "application/jsonx",
  "application/grpcx",
])("an RPC in %s is 415", async (type) => {
  const answer = await fetch(suite.server.url + VERIFY, {
    method: "POST",
    headers: { "content-type": type },
    body: "{}",
  });
  expect(answer.status).toBe(415);
  expect(await answer.json()).toEqual(refusal(415, "INVALID_ARGUMENT", "MEDIA_TYPE_NOT_SUPPORTED"));
});

test.for(["GET", "PUT", "PATCH", "DELETE"])(
  "an RPC with side effects called by %s is 405 with the allowed methods",
  async (method) => {
    const answer = await fetch(`${suite.server.url + VERIFY}?encoding=json&message=%7B%7D`, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST");
    expect(await answer.json()).toEqual(refusal(405, "UNIMPLEMENTED", "METHOD_NOT_ALLOWED"));
  },
);
