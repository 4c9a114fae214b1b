import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { useService } from "../support/conformance.ts";
import { callGrpc, frame, rpcPath, send } from "../support/wire.ts";

const suite = useService();
const { createIssuedApiKey } = IssuedApiKeysService.method;

/** Longer than Node's timers can wait. */
describe("a deadline of weeks", () => {
  const LONGEST_GRPC = ["1000H", "99999999H", "2147484S"];
  const LONGEST_CONNECT = ["2147483648", "9999999999"];
  const request = JSON.stringify({ name: "a", actor_id: "a" });
  const create = rpcPath(createIssuedApiKey);

  test.for(LONGEST_GRPC)("of %s works over gRPC, compressed too", async (timeout) => {
    const headers = { "content-type": "application/grpc+json", "grpc-timeout": timeout };
    const plain = await callGrpc(suite.server.url, create, frame(Buffer.from(request)), headers);
    const gzipped = await callGrpc(suite.server.url, create, frame(gzipSync(request), { flags: 1 }), {
      ...headers,
      "grpc-encoding": "gzip",
    });
    expect([plain.status, gzipped.status]).toEqual([0, 0]);
  });

  test.for(LONGEST_GRPC)("of %s works over gRPC-Web", async (timeout) => {
    const headers = { "content-type": "application/grpc-web+json", "grpc-timeout": timeout };
    const answer = await send(suite.server.url + create, "POST", frame(Buffer.from(request)), headers);
    expect(answer.text).toContain("grpc-status: 0\r\n");
  });

  test.for(LONGEST_CONNECT)("of %s ms works over Connect, compressed too", async (timeout) => {
    const headers = { "content-type": "application/json", "connect-timeout-ms": timeout };
    const plain = await send(suite.server.url + create, "POST", request, headers);
    const gzipped = await send(suite.server.url + create, "POST", gzipSync(request), {
      ...headers,
      "content-encoding": "gzip",
    });
    expect([plain.status, gzipped.status]).toEqual([200, 200]);
  });

  test("works for a stream", async () => {
    const headers = { "grpc-timeout": "1000H", "content-type": "application/grpc" };
    const question = frame(Buffer.from([0x3a, 0x00]));
    const path = rpcPath(ServerReflection.method.serverReflectionInfo);
    expect((await callGrpc(suite.server.url, path, question, headers)).status).toBe(0);
  });
});

test("an unreadable request with an expired deadline is no server error", async () => {
  const path = rpcPath(createIssuedApiKey);
  const answer = await callGrpc(suite.server.url, path, frame(Buffer.from("0aff", "hex")), { "grpc-timeout": "0n" });
  expect([3, 4]).toContain(answer.status);
});
