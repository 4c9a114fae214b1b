import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  BatchCreateImportedApiKeysRequestSchema,
  ImportedApiKeysService,
} from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { paths } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ KEYHOLD_AUTH: "admin-token" });
});
afterAll(() => server.close());

const { typeName, method } = ImportedApiKeysService;
const rpcPath = `/${typeName}/${method.batchCreateImportedApiKeys.name}`;

/** Each body is invalid, so that an error about the body proves that the server has read it. */
const requests = [
  ["REST", `${paths.imported}:batchCreate`, "application/json", "not JSON"],
  ["REST of another type", `${paths.imported}:batchCreate`, "text/plain", "x"],
  ["Connect with JSON", rpcPath, "application/json", "not JSON"],
  ["Connect with binary", rpcPath, "application/proto", "\u0007"],
] as const;

test.each(requests)(
  "over %s a caller without a credential is rejected before the body is read",
  async (_, path, type, body) => {
    const response = await fetch(server.url + path, { method: "POST", headers: { "content-type": type }, body });
    expect(response.status).toBe(401);
    expect(await response.text()).toContain("CALLER_UNAUTHENTICATED");
  },
);

test("a flood of empty items without a credential is not decoded", async () => {
  const request = create(BatchCreateImportedApiKeysRequestSchema, {
    requests: Array.from({ length: 1000 }, () => ({})),
  });
  const once = toBinary(BatchCreateImportedApiKeysRequestSchema, request);
  const body = Buffer.concat(Array.from({ length: 8000 }, () => once));
  const before = process.cpuUsage();
  const headers = { "content-type": "application/proto" };
  const response = await fetch(server.url + rpcPath, { method: "POST", headers, body });
  expect(response.status).toBe(401);
  const { user } = process.cpuUsage(before);
  // Decoding takes over 10 s of CPU; reading and discarding well below one.
  expect(user).toBeLessThan(4_000_000);
});
