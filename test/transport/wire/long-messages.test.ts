import { afterAll, beforeAll, expect, test } from "vitest";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { type Json, paths, type RestClient, restClient } from "../../support/rest.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { rpcPath, send } from "../../support/wire.ts";

/** Messages that are read and written in several ticks of the event loop, so that other requests are served in between. */

let server: TestServer;
let rest: RestClient;

beforeAll(async () => {
  server = await startTestServer();
  rest = restClient(server);
});

afterAll(() => server.close());

const COUNT = 150;
const batchPaths = [
  ["REST", `${paths.imported}:batchCreate`],
  ["Connect", rpcPath(ImportedApiKeysService.method.batchCreateImportedApiKeys)],
] as const;

/** More than 128 KiB. */
function batchOf(mark: string, last: object = {}) {
  const scopes = Array.from({ length: 10 }, (_, place) => `scope.${place}.${"s".repeat(100)}`);
  const requests = Array.from({ length: COUNT }, (_, place) => ({
    raw_key: `${mark}-${place}-${crypto.randomUUID()}`,
    name: `${mark} "${place}", é`,
    actor_id: "actor",
    scopes,
    metadata: { place: `${place}` },
  }));
  return { requests: [...requests.slice(1), { ...requests[0], ...last }] };
}

test.each(batchPaths)("a long batch over %s is processed item by item", async (mark, path) => {
  const batch = batchOf(mark);
  const { status, headers, body } = await rest("POST", path, batch);
  expect({ status, success: body.success_count, failure: body.failure_count }).toEqual({
    status: 200,
    success: COUNT,
    failure: 0,
  });
  expect(headers.get("content-type")).toMatch(/^application\/json/);
  expect(body.results.map(({ index }: Json) => index)).toEqual(batch.requests.map((_, place) => place));
  expect(body.results.map(({ imported_api_key: key }: Json) => key.name)).toEqual(
    batch.requests.map((one) => one.name),
  );
  expect(body.results[COUNT - 1].imported_api_key.metadata).toEqual({ place: "0" });
});

test.each(batchPaths)("a long batch over %s with an unknown field is refused as a whole", async (mark, path) => {
  const { status, text } = await rest("POST", path, batchOf(`unknown ${mark}`, { nope: 1 }));
  expect({ status, text }).toEqual({ status: 400, text: expect.stringContaining(`requests[${COUNT - 1}].nope`) });
  const { body } = await rest("GET", `${paths.imported}?filter=${encodeURIComponent(`name="unknown ${mark}*"`)}`);
  expect(body.imported_api_keys).toEqual([]);
});

test("a long batch over Connect with an invalid item names it", async () => {
  const { status, body } = await rest("POST", batchPaths[1][1], batchOf("invalid", { raw_key: "" }));
  expect({ status, failure: body.failure_count }).toEqual({ status: 200, failure: 1 });
  expect(body.results[COUNT - 1]).toMatchObject({
    error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_INVALID_ARGUMENT",
  });
});

test("a long page is the same over REST and Connect", async () => {
  const query = { page_size: COUNT };
  const overRest = await rest("GET", `${paths.imported}?page_size=${COUNT}`);
  const overConnect = await rest("POST", rpcPath(ImportedApiKeysService.method.listImportedApiKeys), query);
  expect(overRest.body.imported_api_keys).toHaveLength(COUNT);
  expect(overRest.body).toEqual(overConnect.body);
  expect(overRest.headers.get("content-type")).toBe("application/json; charset=utf-8");
});

const GRPC_WEB_JSON = { "content-type": "application/grpc-web+json" };

test("a long batch in a frame of JSON is processed item by item", async () => {
  const batch = batchOf("framed");
  const { text } = await send(server.url + batchPaths[1][1], "POST", framed(batch), GRPC_WEB_JSON);
  expect(text).toContain(`"success_count":${COUNT}`);
  expect(text).toContain("grpc-status: 0");
});

test.each([-1, 1])("a long frame of JSON whose length is off by %i is refused", async (error) => {
  const name = `frame of ${error}`;
  const { text } = await send(server.url + batchPaths[1][1], "POST", framed(batchOf(name), error), GRPC_WEB_JSON);
  expect(text).toMatch(/grpc-status: (?:3|12)\r\n/);
  const { body } = await rest("GET", `${paths.imported}?filter=${encodeURIComponent(`name="${name}*"`)}`);
  expect(body.imported_api_keys).toEqual([]);
});

/** A frame with the JSON of a message, whose length is wrong by that much. */
function framed(message: object, error = 0): Uint8Array<ArrayBuffer> {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length + error, 1);
  return new Uint8Array(Buffer.concat([head, json]));
}
