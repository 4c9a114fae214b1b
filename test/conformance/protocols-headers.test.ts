import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { createConnectTransport } from "@connectrpc/connect-web";
import { describe, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { lockTable } from "../support/locked-row.ts";
import { answered, type Reply } from "../support/protocols/call.ts";
import { callOver } from "../support/protocols/connect.ts";
import { issued } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { issue, paths } from "../support/rest.ts";

const suite = useProtocols();

const { verifyApiKey } = ApiKeysService.method;
const { getIssuedApiKey, listIssuedApiKeys } = IssuedApiKeysService.method;

const rpc = (method: { parent: { typeName: string }; name: string }) => `/${method.parent.typeName}/${method.name}`;

/** The responses of every protocol to the same call, by protocol. */
async function fromAll<T>(ask: (protocol: (typeof suite.protocols)[number]) => Promise<T>): Promise<Map<string, T>> {
  const answers = new Map<string, T>();
  for (const protocol of suite.protocols) answers.set(protocol.name, await ask(protocol));
  expect(answers.size).toBeGreaterThanOrEqual(10);
  return answers;
}

describe("a header or piece of metadata", () => {
  test("Cache-Control: no-cache requests a fresh verdict over every protocol", async () => {
    const verdicts = await fromAll(async ({ call }) => {
      const { secret: credential, keyId } = await issued(call);
      await call(verifyApiKey, { credential });
      await suite.sql`UPDATE api_keys SET revoke_time = now(), revocation_reason = 'REVOCATION_REASON_SUPERSEDED'
        WHERE key_id = ${keyId}`;
      return answered(await call(verifyApiKey, { credential }, { "cache-control": "no-cache" })).isValid;
    });
    expect(new Set(verdicts.values())).toEqual(new Set([false]));
  });

  test("X-Request-Id is returned and logged", async () => {
    const id = (reply: Reply) => reply.headers.get("x-request-id");
    const given = new Map(suite.protocols.map(({ name }) => [name, randomUUID()]));
    const received = await fromAll(async ({ name, call }) =>
      id(await call(verifyApiKey, { credential: "x" }, { "x-request-id": given.get(name) ?? "" })),
    );
    expect(received).toEqual(given);
    for (const [name, requestId] of given)
      expect(suite.server.log().includes(`"reqId":"${requestId}"`), name).toBe(true);
  });
});

test("the JWKS is cacheable for the same time and with the same ETag over every protocol", async () => {
  const headers = await fromAll(async ({ call }) => {
    const { headers } = await call(DerivedKeysService.method.getJwks, {});
    return `${headers.get("cache-control")} ${headers.get("etag")}`;
  });
  expect([...new Set(headers.values())]).toEqual([expect.stringMatching(/^public, max-age=\d+ "[\w-]{43}"$/)]);
});

describe("Connect GET", () => {
  /** A client that behaves like a browser, and the HTTP methods it has sent. */
  function gettingClient() {
    const methods: (string | undefined)[] = [];
    const recordingFetch: typeof fetch = (input, init) => {
      methods.push(init?.method);
      return fetch(input, init);
    };
    const transport = createConnectTransport({ baseUrl: suite.server.url, useHttpGet: true, fetch: recordingFetch });
    return { methods, call: callOver(transport) };
  }

  test("carries only RPCs without side effects", async () => {
    const { methods, call } = gettingClient();
    const { keyId } = await issued(call);
    expect(answered(await call(getIssuedApiKey, { keyId })).keyId).toBe(keyId);
    expect(answered(await call(listIssuedApiKeys, { filter: `key_id="${keyId}"` })).issuedApiKeys.length).toBe(1);
    expect(methods).toEqual(["POST", "GET", "GET"]);
  });

  test("is not cacheable unless the RPC allows it", async () => {
    const { call } = gettingClient();
    const { headers } = await call(getIssuedApiKey, { keyId: (await issued(call)).keyId });
    expect(headers.get("cache-control")).toBe("no-store");
  });
});

describe("the JSON of Connect", () => {
  const post = (path: string, body: string) =>
    fetch(suite.server.url + path, { method: "POST", headers: { "content-type": "application/json" }, body });

  test("equals the JSON of REST", async () => {
    const { keyId } = await issue(suite.rest, { metadata: { team: "a" }, ttl: "1h" });
    const { text } = await suite.rest("GET", `${paths.issued}/${keyId}`);
    const answer = await post(rpc(getIssuedApiKey), JSON.stringify({ key_id: keyId }));
    expect(await answer.text()).toBe(text);
    expect(text).toContain('"create_time"');
  });

  test.for([["key_id"], ["keyId"]])("takes %s", async ([name]) => {
    const { keyId } = await issue(suite.rest);
    const answer = await post(rpc(getIssuedApiKey), JSON.stringify({ [`${name}`]: keyId }));
    expect(await answer.json()).toMatchObject({ key_id: keyId });
  });

  test("has errors in the Connect form, with details that are readable without types", async () => {
    const answer = await post(rpc(getIssuedApiKey), JSON.stringify({ key_id: "no id" }));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({
      code: "invalid_argument",
      message: expect.stringMatching(/^key_id: /),
      details: [
        expect.objectContaining({
          type: "google.rpc.ErrorInfo",
          debug: { reason: "INVALID_ARGUMENT", domain: "keyhold", metadata: {} },
        }),
        expect.objectContaining({
          type: "google.rpc.BadRequest",
          debug: { field_violations: [expect.objectContaining({ field: "key_id" })] },
        }),
      ],
    });
  });
});

describe("a deadline that passes while the database is stuck", () => {
  /** Runs `ask` while every query on keys waits. */
  async function whileStuck<T>(ask: () => Promise<T>): Promise<T> {
    const unlock = await lockTable(suite.sql, "api_keys");
    try {
      return await ask();
    } finally {
      await unlock();
    }
  }

  test("is reported to Connect clients that leave it to the server", async () => {
    const headers = { "content-type": "application/json", "connect-timeout-ms": "50" };
    const answer = await whileStuck(() =>
      fetch(suite.server.url + rpc(listIssuedApiKeys), { method: "POST", headers, body: "{}" }),
    );
    expect(answer.status).toBe(504);
    expect(await answer.json()).toMatchObject({ code: "deadline_exceeded" });
  });

  test("is reported to gRPC clients that leave it to the server", async () => {
    const session = connectHttp2(suite.server.url);
    const trailers = await whileStuck(async () => {
      const head = {
        ":method": "POST",
        ":path": rpc(listIssuedApiKeys),
        "content-type": "application/grpc",
        te: "trailers",
      };
      const stream = session.request({ ...head, "grpc-timeout": "50m" });
      stream.end(Buffer.alloc(5)).resume();
      const [received] = await once(stream, "trailers");
      return received;
    });
    session.close();
    expect(trailers).toMatchObject({ "grpc-status": "4", "grpc-message": "the operation timed out" });
  });

  test("does not harm the server: the same call without a deadline waits and succeeds", async () => {
    let answer: Promise<unknown> | undefined;
    await whileStuck(async () => {
      answer = suite.rest("GET", paths.issued);
      await fetch(`${suite.server.url}/health/alive`);
    });
    expect(await answer).toMatchObject({ status: 200 });
  });
});
