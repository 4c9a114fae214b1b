import { performance } from "node:perf_hooks";
import { describe, expect, test } from "vitest";
import { type Expected, expectRefused, invalid, table, useService } from "../support/conformance.ts";
import { type Answer, paths } from "../support/rest.ts";
import { exchange, expectNoChanges, readConnectError, send } from "../support/wire.ts";

const suite = useService();
expectNoChanges(suite);

const JSON_TYPE = { "content-type": "application/json" };
const KEY = { name: "a key", actor_id: "actor_1" };
const CREATE = "/keyhold.v2alpha1.IssuedApiKeysService/CreateIssuedApiKey";
const DERIVE = "/keyhold.v2alpha1.ApiKeysService/DeriveToken";
const BATCH = "/keyhold.v2alpha1.ImportedApiKeysService/BatchCreateImportedApiKeys";

const tooLarge: Expected = { code: 413, status: "RESOURCE_EXHAUSTED", reason: "BODY_TOO_LARGE" };
const wrongType: Expected = { code: 415, status: "INVALID_ARGUMENT", reason: "MEDIA_TYPE_NOT_SUPPORTED" };
const compressed: Expected = { code: 415, status: "INVALID_ARGUMENT", reason: "CONTENT_ENCODING_NOT_SUPPORTED" };

const text = (value: string) => Buffer.from(value);
const json = (value: unknown) => text(JSON.stringify(value));
const nested = (open: string, close: string, depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`;

/** Description, bytes, and the field that the error names. */
const BODIES: readonly (readonly [what: string, body: Buffer<ArrayBuffer>, field: string])[] = [
  ["arrays 100,000 deep", text(nested("[", "]", 100_000)), "body"],
  ["objects 60,000 deep", text(nested('{"metadata":', "}", 60_000)), "body"],
  ["objects 101 deep", text(nested('{"metadata":', "}", 101)), "body"],
  ["null", text("null"), "body"],
  ["an array", json([KEY]), "body"],
  ["half an object", text('{"name": "a key", "actor_id":'), "body"],
  ["two objects", text(`${JSON.stringify(KEY)}${JSON.stringify(KEY)}`), "body"],
  ["NaN", text('{"name": NaN, "actor_id": "a"}'), "body"],
  ["UTF-16", Buffer.from(JSON.stringify(KEY), "utf16le"), "body"],
  ["invalid UTF-8", Buffer.from([...text('{"name": "'), 0xff, 0xfe, ...text('", "actor_id": "a"}')]), "body"],
  ["Latin-1", Buffer.from('{"name": "\u00e9", "actor_id": "a"}', "latin1"), "body"],
  [
    "a surrogate in UTF-8",
    Buffer.from([...text('{"name": "'), 0xed, 0xa0, 0x80, ...text('", "actor_id": "a"}')]),
    "body",
  ],
  ["undeclared gzip", Buffer.from("1f8b0800000000000003abae050043bfa6a302000000", "hex"), "body"],
];

describe.each(table(BODIES))("a body of %s", (_, body, field) => {
  test("is refused on the REST path", async () => {
    expectRefused(await send(suite.server.url + paths.issued, "POST", body, JSON_TYPE), invalid(field));
  });

  test("is refused over Connect", async () => {
    const answer = await send(suite.server.url + CREATE, "POST", body, JSON_TYPE);
    const expected = { code: "invalid_argument", reason: "INVALID_ARGUMENT", fields: [field] };
    expect({ status: answer.status, ...readConnectError(answer) }).toEqual({ status: 400, ...expected });
  });
});

test("claims that are nested too deep are refused", async () => {
  const claims = nested('{"a":', "}", 60_000);
  const body = text(`{"credential": "a", "algorithm": "TOKEN_ALGORITHM_JWT", "custom_claims": ${claims}}`);
  expectRefused(await send(`${suite.server.url}${paths.keys}:derive`, "POST", body, JSON_TYPE), invalid("body"));
  expect(readConnectError(await send(suite.server.url + DERIVE, "POST", body, JSON_TYPE))).toMatchObject({
    code: "invalid_argument",
    fields: ["body"],
  });
});

test.each(["POST", "PATCH"])("%s without a body is refused with the missing fields", async (method) => {
  const path = method === "POST" ? paths.issued : `${paths.issued}/0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10`;
  const expected = method === "POST" ? invalid("name", "actor_id") : invalid("update_mask");
  expectRefused(await send(suite.server.url + path, method, undefined), expected);
  expectRefused(await send(suite.server.url + path, method, "", JSON_TYPE), expected);
});

const MIB = 1024 * 1024;
const OVERSIZE = [
  [paths.issued, CREATE, json({ ...KEY, name: "a".repeat(10_000_000) })],
  [`${paths.imported}:batchCreate`, BATCH, json({ requests: [{ ...KEY, raw_key: "a".repeat(17 * MIB) }] })],
] as const;

describe.each(table(OVERSIZE))("a body over the limit of %s", (path, rpc, body) => {
  test("is refused with and without a declared length", async () => {
    expectRefused(await send(suite.server.url + path, "POST", body, JSON_TYPE), tooLarge);
    const stream = new Blob([body]).stream();
    const response = await fetch(suite.server.url + path, {
      method: "POST",
      body: stream,
      duplex: "half",
      headers: JSON_TYPE,
    });
    expect(response.status).toBe(413);
    await response.text();
  });

  test("is refused over Connect", async () => {
    const answer = await send(suite.server.url + rpc, "POST", body, JSON_TYPE);
    expect(readConnectError(answer)).toEqual({ code: "resource_exhausted", reason: "BODY_TOO_LARGE", fields: [] });
  });
});

const HEADERS: readonly (readonly [headers: Record<string, string>, Expected])[] = [
  [{ "content-type": "text/plain" }, wrongType],
  [{ "content-type": "application/x-www-form-urlencoded" }, wrongType],
  [{ "content-type": "multipart/form-data; boundary=a" }, wrongType],
  [{ "content-type": "application/xml" }, wrongType],
  [{ "content-type": "application/jsonp" }, wrongType],
  [{ "content-type": "application/json; charset=utf-16" }, wrongType],
  [{ "content-type": "application/json, text/plain" }, wrongType],
  [{ "content-type": ";;;" }, wrongType],
  [{ "content-type": "" }, wrongType],
  [{ ...JSON_TYPE, "content-encoding": "gzip" }, compressed],
  [{ ...JSON_TYPE, "content-encoding": "a b" }, compressed],
];

test.each(table(HEADERS))("a body declared as %j is refused", async (headers, expected) => {
  const body = new Blob([json(KEY)]).stream();
  const response = await fetch(suite.server.url + paths.issued, { method: "POST", body, duplex: "half", headers });
  const answer = { status: response.status, headers: response.headers, text: await response.text() };
  expectRefused({ ...answer, body: JSON.parse(answer.text) }, expected);
});

test.each(["GET", "DELETE"])("%s takes no body", async (method) => {
  const path = `${paths.imported}/0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10`;
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2`;
  const answer = await exchange(suite.server.address, `${head}\r\nConnection: close\r\n\r\n{}`);
  expect(answer).toMatch(/^HTTP\/1\.1 400 .*"field":"body"/s);
});

interface Flood {
  readonly what: string;
  readonly path: string;
  readonly head: string;
  readonly item: string;
  readonly count: number;
  readonly tail: string;
}

const OF_KEY = '{"name":"a","actor_id":"a",';
const OF_TOKEN = '{"credential":"a","algorithm":"TOKEN_ALGORITHM_JWT",';

/** Within the limit of the body, with so many values that validating or listing each would take seconds and megabytes. */
const FLOODS: readonly Flood[] = [
  { what: "empty scopes", path: paths.issued, head: `${OF_KEY}"scopes":[`, item: '""', count: 200_000, tail: "]}" },
  { what: "entries", path: paths.issued, head: `${OF_KEY}"metadata":{`, item: '"#":""', count: 80_000, tail: "}}" },
  {
    what: "claims",
    path: `${paths.keys}:derive`,
    head: `${OF_TOKEN}"custom_claims":{"a":[`,
    item: '"\\u0000"',
    count: 90_000,
    tail: "]}}",
  },
];

test.each(table(FLOODS))("a flood of $what is refused quickly with a short response", async (flood) => {
  const { path, head, item, count, tail } = flood;
  const items = Array.from({ length: count }, (_, index) => item.replace("#", String(index)));
  await expectBrief(() => send(suite.server.url + path, "POST", head + items.join() + tail, JSON_TYPE));
});

test("a flood of scopes in Protobuf is refused quickly with a short response", async () => {
  const scopes = Buffer.alloc(MIB, Buffer.from("1a00", "hex"));
  await expectBrief(() => send(suite.server.url + CREATE, "POST", scopes, { "content-type": "application/proto" }));
});

async function expectBrief(ask: () => Promise<Answer>): Promise<void> {
  const start = performance.now();
  const answer = await ask();
  expect(answer.status).toBe(400);
  expect(answer.text.length).toBeLessThan(8192);
  expect(performance.now() - start).toBeLessThan(5000);
}
