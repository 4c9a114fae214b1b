import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { compressionGzip, createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { compressionAlgorithms, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { answered, type Protocol } from "../support/protocols/call.ts";
import { callOver } from "../support/protocols/connect.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { draft } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";

const suite = useProtocols();

const { verifyApiKey } = ApiKeysService.method;
const { batchCreateImportedApiKeys: batchCreate } = ImportedApiKeysService.method;

const MIB = 1024 * 1024;

const tooLarge = {
  ok: false,
  code: "RESOURCE_EXHAUSTED",
  message: "the request body is too large",
  details: { "google.rpc.ErrorInfo": { reason: "BODY_TOO_LARGE", domain: "keyhold", metadata: {} } },
};

/** Raw keys of the maximum length: 2 MiB in all, which exceeds the limit of every other RPC. */
function longRawKeys(): string[] {
  return Array.from({ length: 512 }, () => randomBytes(2048).toString("hex"));
}

async function importAll({ call }: Pick<Protocol, "call">, rawKeys: readonly string[]): Promise<number> {
  const requests = rawKeys.map((rawKey) => ({ ...draft(), rawKey }));
  return answered(await call(batchCreate, { requests })).successCount;
}

/** A GET cannot carry so much; the client posts it, as "Connect in JSON" does. */
const postingProtocols = () => suite.protocols.filter(({ name }) => !name.includes("GET"));

/** Over HTTP/1.1, connect-node leaves a request unfinished when the response arrives first, and a closing server waits for it. */
const completingProtocols = () => postingProtocols().filter(({ name }) => name !== "Connect in binary");

describe("a message over the limit", () => {
  test("of 1 MiB is refused over every protocol", async () => {
    const credential = "x".repeat(MIB);
    for (const { name, call } of postingProtocols()) {
      expect(await call(verifyApiKey, { credential }), name).toMatchObject(tooLarge);
    }
  });

  test("is refused before it is complete, and the rest does not disturb the next call", async () => {
    const credential = "x".repeat(8 * MIB);
    for (const { name, call } of completingProtocols()) {
      expect(await call(verifyApiKey, { credential }), name).toMatchObject(tooLarge);
      expect(await call(verifyApiKey, { credential: "short" }), name).toMatchObject({ ok: true });
    }
  });

  test("of 4 MiB is refused in batchCreate", async () => {
    const requests = [{ ...draft(), rawKey: "x".repeat(4 * MIB) }];
    for (const { name, call } of completingProtocols().filter(({ name }) => !name.includes("JSON"))) {
      expect(await call(batchCreate, { requests }), name).toMatchObject(tooLarge);
    }
  });

  test("is refused however small it is when compressed", async () => {
    const body = gzipSync(JSON.stringify({ credential: "x".repeat(2 * MIB) }));
    expect(body.length).toBeLessThan(MIB / 100);
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    const url = `${suite.server.url}/keyhold.v2alpha1.ApiKeysService/VerifyApiKey`;
    const answer = await fetch(url, { method: "POST", headers, body });
    expect(await answer.json()).toMatchObject({ code: "resource_exhausted", message: tooLarge.message });
  });
});

test.for(["gRPC", "Connect in JSON", "REST"])("a batch of more than 1 MiB is accepted over %s", async (wanted) => {
  const [protocol, ...others] = suite.protocols.filter(({ name }) => name === wanted);
  expect(others).toEqual([]);
  expect(protocol && (await importAll(protocol, longRawKeys()))).toBe(512);
});

describe("a compressed request", () => {
  let clients: readonly Protocol[];
  beforeAll(() => {
    const { url: baseUrl, address } = suite.server;
    const options = { "grpc.default_compression_algorithm": compressionAlgorithms.gzip };
    const sending = { baseUrl, httpVersion: "2", sendCompression: compressionGzip, compressMinBytes: 1 } as const;
    const close = () => {};
    clients = [
      grpcProtocol("gRPC by grpc-js", address, credentials.createInsecure(), options),
      { name: "gRPC by connect-node", call: callOver(createGrpcTransport(sending)), close },
      { name: "Connect", call: callOver(createConnectTransport(sending)), close },
    ];
  });
  afterAll(() => clients.forEach((client) => void client.close()));

  test("is decompressed by every protocol with compression", async () => {
    expect(clients.length).toBe(3);
    for (const client of clients) {
      const rawKeys = Array.from({ length: 50 }, () => randomBytes(32).toString("hex"));
      expect(await importAll(client, rawKeys), client.name).toBe(50);
    }
  });

  test("is refused by REST with CONTENT_ENCODING_NOT_SUPPORTED", async () => {
    const headers = { "content-encoding": "gzip" };
    const { status, body } = await suite.rest("POST", "/v2alpha1/admin/apiKeys:verify", { credential: "x" }, headers);
    expect(status).toBe(415);
    expect(body.error.details[0].reason).toBe("CONTENT_ENCODING_NOT_SUPPORTED");
  });

  test("with an unknown encoding is UNIMPLEMENTED, with the supported ones", async () => {
    const headers = { "content-type": "application/json", "content-encoding": "zstd" };
    const url = `${suite.server.url}/keyhold.v2alpha1.ApiKeysService/VerifyApiKey`;
    const answer = await fetch(url, { method: "POST", headers, body: "{}" });
    expect(await answer.json()).toMatchObject({ code: "unimplemented", message: expect.stringContaining("gzip") });
  });
});
