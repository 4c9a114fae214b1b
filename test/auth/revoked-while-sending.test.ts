import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { fromJson, toBinary } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { basic, INTROSPECT } from "../support/introspect.ts";
import { issue, paths } from "../support/rest.ts";
import { frame, rpcPath } from "../support/wire.ts";

const suite = useGuardedService();
const { createIssuedApiKey } = IssuedApiKeysService.method;

const JSON_REQUEST = { name: "late", actor_id: "actor_late" };
const PROTO_REQUEST = Buffer.from(toBinary(createIssuedApiKey.input, fromJson(createIssuedApiKey.input, JSON_REQUEST)));

interface Way {
  readonly path: string;
  readonly type: string;
  readonly body: Buffer;
}

const REST: Way = { path: paths.issued, type: "application/json", body: Buffer.from(JSON.stringify(JSON_REQUEST)) };
const CONNECT: Way = { ...REST, path: rpcPath(createIssuedApiKey) };
const GRPC: Way = { path: CONNECT.path, type: "application/grpc+proto", body: frame(PROTO_REQUEST) };
const GRPC_WEB: Way = { ...GRPC, type: "application/grpc-web+proto" };

/** A request without the last byte of its body. */
interface Held {
  /** Sends the rest; resolves to the HTTP status, and the gRPC status if present. */
  finish(): Promise<string>;
}

async function holdHttp1({ path, type, body }: Way, headers: Record<string, string>): Promise<Held> {
  const sent = { ...headers, "content-type": type, "content-length": String(body.length) };
  const request = httpRequest(suite.server.url + path, { method: "POST", agent: false, headers: sent });
  const response = once(request, "response");
  request.write(body.subarray(0, -1));
  return {
    async finish() {
      request.end(body.subarray(-1));
      const [message] = await response;
      const content = await text(message);
      return `${message.statusCode} ${/grpc-status: \d+/.exec(content) ?? message.headers["grpc-status"] ?? ""}`;
    },
  };
}

async function holdHttp2({ path, type, body }: Way, headers: Record<string, string>): Promise<Held> {
  const session = connect(suite.server.url);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": type, ...headers });
  const response = once(stream, "response");
  let status = "";
  stream.on("trailers", (fields) => {
    status = `grpc-status: ${fields["grpc-status"]}`;
  });
  stream.write(body.subarray(0, -1));
  return {
    async finish() {
      stream.end(body.subarray(-1));
      const [fields] = await response;
      await text(stream);
      return `${fields[":status"]} ${status || (fields["grpc-status"] ?? "")}`;
    },
  };
}

const WAYS = [
  ["REST over HTTP/1.1", holdHttp1, REST, /^401 /],
  ["REST over HTTP/2", holdHttp2, REST, /^401 /],
  ["Connect over HTTP/1.1", holdHttp1, CONNECT, /^401 /],
  ["Connect over HTTP/2", holdHttp2, CONNECT, /^401 /],
  ["gRPC", holdHttp2, GRPC, /^200 .*16$/],
  ["gRPC-Web over HTTP/1.1", holdHttp1, GRPC_WEB, /^200 .*16$/],
] as const;

/** Waits until the server has read the bytes sent before; it reads the connections of this process in the order of their bytes. */
async function roundTrip(): Promise<void> {
  for (let i = 0; i < 3; i++) expect((await suite.rest("GET", "/health/alive")).status).toBe(200);
}

test("an admin token disabled while the body is in transit changes nothing", async () => {
  for (const [, hold, way, refused] of WAYS) {
    const { secret, keyId } = await issue(suite.rest, { scopes: ["keyhold:keys.write"] });
    const held = await hold(way, bearer(secret));
    await roundTrip();
    expect((await suite.rest("POST", `${paths.keys}/${keyId}:disable`, {})).status).toBe(200);
    expect(await held.finish()).toMatch(refused);
  }
});

test.each(WAYS)("%s: an admin token revoked while the body is in transit changes nothing", async (...row) => {
  const [, hold, way, refused] = row;
  const { secret, keyId } = await issue(suite.rest, { scopes: ["keyhold:keys.write"] });
  const held = await hold(way, bearer(secret));
  await roundTrip();
  expect((await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {})).status).toBe(200);
  expect(await held.finish()).toMatch(refused);
  const filter = encodeURIComponent(`actor_id="${JSON_REQUEST.actor_id}"`);
  const { body } = await suite.rest("GET", `${paths.issued}?filter=${filter}`);
  expect(body.issued_api_keys).toEqual([]);
});

test.each([
  ["HTTP/1.1", holdHttp1],
  ["HTTP/2", holdHttp2],
])("introspection over %s: a caller revoked while the form is in transit is refused", async (_, hold) => {
  const { secret, keyId } = await issue(suite.rest, { scopes: ["keyhold:verify"] });
  const form = Buffer.from(`token=${secret}`);
  const held = await hold(
    { path: INTROSPECT, type: "application/x-www-form-urlencoded", body: form },
    basic("a", secret),
  );
  await roundTrip();
  expect((await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {})).status).toBe(200);
  expect(await held.finish()).toMatch(/^401 /);
});
