import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { toConfig } from "../../src/server/config/config.ts";
import { table, useService } from "../support/conformance.ts";
import type { CallRpc } from "../support/protocols/call.ts";
import { callOver } from "../support/protocols/connect.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { issued } from "../support/protocols/keys.ts";

const fixture = (part: string) => fileURLToPath(new URL(`../support/tls/localhost.${part}.pem`, import.meta.url));
const files = { KEYHOLD_TLS_CERT_FILE: fixture("cert"), KEYHOLD_TLS_KEY_FILE: fixture("key") };
const ca = readFileSync(files.KEYHOLD_TLS_CERT_FILE);

const suite = useService(files);

const { verifyApiKey } = ApiKeysService.method;

function grpcBy(channel: ChannelCredentials): CallRpc {
  // The server's address is an IP address, which TLS does not accept as a server name.
  const options = { "grpc.ssl_target_name_override": "localhost" };
  const { call, close } = grpcProtocol("gRPC", suite.server.address, channel, options);
  onTestFinished(close);
  return call;
}

const CLIENTS: Readonly<Record<string, () => CallRpc>> = {
  "gRPC by grpc-js, which takes HTTP/2 by ALPN": () => grpcBy(credentials.createSsl(ca)),
  "Connect over HTTP/1.1": () =>
    callOver(createConnectTransport({ baseUrl: suite.server.url, httpVersion: "1.1", nodeOptions: { ca } })),
  "Connect over HTTP/2": () =>
    callOver(createConnectTransport({ baseUrl: suite.server.url, httpVersion: "2", nodeOptions: { ca } })),
  "gRPC-Web over HTTP/1.1": () =>
    callOver(createGrpcWebTransport({ baseUrl: suite.server.url, httpVersion: "1.1", nodeOptions: { ca } })),
};

test.for(table(Object.entries(CLIENTS)))("TLS carries %s", async ([, open]) => {
  const call = open();
  const { secret: credential, keyId } = await issued(call);
  expect(await call(verifyApiKey, { credential })).toMatchObject({ ok: true, message: { isValid: true, keyId } });
});

test("TLS carries REST over HTTP/1.1", async () => {
  const outgoing = request(`${suite.server.url}/health/ready`, { ca, agent: false }).end();
  const [response] = await once(outgoing, "response");
  expect(response.httpVersion).toBe("1.1");
  expect(await json(response)).toMatchObject({ status: "ok" });
});

test("with TLS the server announces https and accepts no plain text", async () => {
  expect(suite.server.url).toMatch(/^https:\/\//);
  await expect(fetch(suite.server.url.replace("https:", "http:"))).rejects.toThrow("fetch failed");
});

test("a client that does not trust the certificate does not connect", async () => {
  const call = grpcBy(credentials.createSsl());
  const refused = { code: "UNAVAILABLE", message: expect.stringContaining("self-signed certificate") };
  expect(await call(verifyApiKey, { credential: "x" })).toMatchObject(refused);
});

test.for(["KEYHOLD_TLS_CERT_FILE", "KEYHOLD_TLS_KEY_FILE"] as const)("%s alone is refused", (name) => {
  expect(() => toConfig({ [name]: files[name] })).toThrow(
    /^KEYHOLD_TLS_(CERT|KEY)_FILE: is required with KEYHOLD_TLS_/,
  );
});
