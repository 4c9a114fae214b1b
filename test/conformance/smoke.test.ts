import { afterAll, beforeAll, expect, test } from "vitest";
import { issue, restClient, verify } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

test("an issued key verifies", async () => {
  const rest = restClient(server);
  const { secret, keyId } = await issue(rest);
  expect(await verify(rest, secret)).toMatchObject({ is_valid: true, key_id: keyId });
});
