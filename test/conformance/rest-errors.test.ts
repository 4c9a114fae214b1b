import { describe, expect, test } from "vitest";
import {
  type Expected,
  expectRefused,
  invalid,
  notFound,
  succeeded,
  table,
  UNKNOWN_KEY_ID,
  useService,
} from "../support/conformance.ts";
import { type Answer, issue, type Json, paths, restClient, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

const KEY = { name: "n", actor_id: "a" };

/** Sends a body unchanged. */
async function send(path: string, body: string | Uint8Array<ArrayBuffer>, type?: string): Promise<Answer> {
  const headers = type === undefined ? [] : [["content-type", type] as [string, string]];
  const response = await fetch(suite.server.url + path, { method: "POST", headers, body });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
}

const JSON_TYPE = "application/json";
const MIB = 1024 * 1024;
const json = JSON.stringify(KEY);

describe("a body", () => {
  const NO_JSON: readonly (readonly [what: string, body: string, fields: readonly string[]])[] = [
    ["that is not JSON", "name=n", ["body"]],
    ["that ends too early", json.slice(0, -1), ["body"]],
    ["with something after it", `${json}x`, ["body"]],
    ["with a trailing comma", '{"name":"n","actor_id":"a",}', ["body"]],
    ["with a comment", `${json} // why`, ["body"]],
    ["in single quotes", "{'name':'n','actor_id':'a'}", ["body"]],
    ["that is a list", "[]", ["body"]],
    ["that is a string", '"n"', ["body"]],
    ["that is null", "null", ["body"]],
    ["with a duplicate name", '{"name":"n","actor_id":"a","name":"m"}', ["name"]],
    ["with a name in both forms", '{"name":"n","actor_id":"a","actorId":"b"}', ["actor_id"]],
    ["nested too deep", `{"metadata":${"[".repeat(200)}${"]".repeat(200)}}`, ["body"]],
    ["with an unknown field", '{"name":"n","actor_id":"a","owner":"b"}', ["owner"]],
    ["with null in a list", '{"name":"n","actor_id":"a","scopes":[null]}', ["scopes[0]"]],
  ];

  test.each(table(NO_JSON))("%s is 400 and names the field", async (_, body, fields) => {
    expectRefused(await send(paths.issued, body, JSON_TYPE), invalid(...fields));
  });

  test("that is not UTF-8 is 400", async () => {
    const body = Uint8Array.from(Buffer.from(json.replace('"n"', '"\u00ff"'), "latin1"));
    expectRefused(await send(paths.issued, body, JSON_TYPE), invalid("body"));
  });

  test("that is empty lacks what is required", async () => {
    for (const body of ["", "{}"])
      expectRefused(await send(paths.issued, body, JSON_TYPE), invalid("name", "actor_id"));
  });

  const TYPES = ["application/json", "application/json; charset=utf-8", 'APPLICATION/JSON;charset="UTF-8"'];
  const OTHER_TYPES = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/xml",
    "application/json-patch+json",
    "application/json; charset=latin1",
    "text/json",
  ];

  test.each(table(TYPES))("of %s is accepted", async (type) => {
    expect((await send(paths.issued, json, type)).status).toBe(200);
  });

  test.each(table(OTHER_TYPES))("of %s is 415", async (type) => {
    const answer = await send(paths.issued, json, type);
    expectRefused(answer, { code: 415, status: "INVALID_ARGUMENT", reason: "MEDIA_TYPE_NOT_SUPPORTED" });
  });

  const tooLarge: Expected = { code: 413, status: "RESOURCE_EXHAUSTED", reason: "BODY_TOO_LARGE" };
  const SIZES = [
    [`${paths.keys}:verify`, MIB, '{"credential":"c"}'],
    [paths.issued, MIB, json],
    [
      `${paths.imported}:batchCreate`,
      16 * MIB,
      '{"requests":[{"name":"n","actor_id":"a","raw_key":"of a large body"}]}',
    ],
  ] as const;

  test.each(table(SIZES))("of %s may have %d bytes, and one byte more is 413", async (path, size, body) => {
    succeeded(await send(path, body.padEnd(size), JSON_TYPE));
    expectRefused(await send(path, body.padEnd(size + 1), JSON_TYPE), tooLarge);
  });

  test("of a GET or DELETE must be empty", async () => {
    const { keyId } = await issue(rest);
    const { status } = await rest("DELETE", `${paths.imported}/${keyId}`, {});
    expect(status).toBe(400);
  });
});

const QUERIES = [
  ["GET", `${paths.issued}/${UNKNOWN_KEY_ID}?view=FULL`, undefined, "view"],
  ["POST", `${paths.issued}?name=m`, KEY, "name"],
  ["POST", `${paths.keys}:verify?credential=c`, { credential: "c" }, "credential"],
  ["DELETE", `${paths.imported}/${UNKNOWN_KEY_ID}?force=true`, undefined, "force"],
] as const;

describe("an unknown query parameter is 400:", () => {
  test.each(table(QUERIES))("%s %s", async (method, path, body, field) => {
    expectRefused(await rest(method, path, body), invalid(field));
  });
});

describe("enum names", () => {
  test("that are unknown are 400, and the error lists the known ones", async () => {
    const { keyId } = await issue(rest);
    const answer = await rest("POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_BORED" });
    expectRefused(answer, invalid("reason"));
    expect(answer.body.error.message).toContain("REVOCATION_REASON_KEY_COMPROMISE");
    expect(answer.body.error.message).not.toContain("BORED");
  });
});

describe("a response", () => {
  test("has RFC 3339 times in UTC, enums as names and field names in snake_case", async () => {
    const { keyId, secret } = await issue(rest, { ttl: "1h" });
    const record = succeeded(await rest("GET", `${paths.issued}/${keyId}`));
    const names = (value: Json): string[] =>
      typeof value === "object" && value !== null
        ? Object.entries(value).flatMap(([name, v]) => [name, ...names(v)])
        : [];
    for (const name of [...names(record), ...names(await verify(rest, secret))])
      expect(name).toMatch(/^(?:[a-z]+(?:_[a-z]+)*|\d+)$/);
    expect(record.status).toMatch(/^KEY_STATUS_[A-Z]+$/);
    for (const time of [record.create_time, record.expire_time])
      expect(new Date(time).toISOString()).toBe(fullTime(time));
  });

  /** Milliseconds are omitted when they are zero. */
  function fullTime(time: string): string {
    return time.includes(".") ? time : time.replace("Z", ".000Z");
  }

  test("has the request id, the caller's own if it sent one", async () => {
    const made = await rest("GET", paths.issued);
    expect(made.headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
    const given = await rest("GET", paths.issued, undefined, { "x-request-id": "my-request-1" });
    expect(given.headers.get("x-request-id")).toBe("my-request-1");
  });
});

/** Every row of the specification's error table, and those that only need a path. */
describe("an error", () => {
  test("for a key that is already revoked is 409", async () => {
    const { keyId } = await issue(rest);
    const again = () => rest("POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_KEY_COMPROMISE" });
    succeeded(await again());
    expectRefused(await again(), {
      code: 409,
      status: "FAILED_PRECONDITION",
      reason: "API_KEY_ALREADY_REVOKED",
      metadata: { key_id: keyId },
    });
  });

  test("has a message, an HTTP code, an RPC status and a machine-readable reason", async () => {
    const answer = await rest("GET", `${paths.issued}/${UNKNOWN_KEY_ID}`);
    expectRefused(answer, notFound(UNKNOWN_KEY_ID));
    expect(Object.keys(answer.body)).toEqual(["error"]);
    expect(Object.keys(answer.body.error)).toEqual(["code", "message", "status", "details"]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test("for bad input names the field in its message", async () => {
    const answer = await rest("POST", paths.issued, { ...KEY, name: "" });
    expect(answer.body.error.message).toContain("name");
    const [, badRequest] = answer.body.error.details;
    expect(badRequest).toMatchObject({
      "@type": "type.googleapis.com/google.rpc.BadRequest",
      field_violations: [{ field: "name", description: expect.stringMatching(/./) }],
    });
  });

  test("contains no credential of the request", async () => {
    const { secret } = await issue(rest);
    const requests: readonly (readonly [string, string, Json])[] = [
      ["POST", `${paths.keys}:verify`, { credential: secret, other: secret }],
      ["POST", `${paths.keys}:verify`, { credential: [secret] }],
      ["POST", `${paths.keys}:derive`, { credential: `${secret}x`, algorithm: secret }],
      ["POST", paths.imported, { ...KEY, raw_key: secret }],
      ["POST", paths.selfRevoke, { credential: `${secret}x` }],
      ["GET", `${paths.issued}/${secret}`, undefined],
      ["GET", `${paths.issued}?filter=${secret}`, undefined],
      ["GET", `${paths.issued}?page_token=${secret}`, undefined],
    ];
    for (const [method, path, body] of table(requests)) {
      const answer = await rest(method, path, body);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.text).not.toContain(secret.slice(10, 40));
    }
  });

  test("of the server hides its cause from the caller and logs it", async () => {
    const { keyId } = await issue(rest);
    await suite.sql`ALTER TABLE api_keys RENAME TO api_keys_renamed`;
    try {
      const answer = await restClient(suite.server)("GET", `${paths.issued}/${keyId}`);
      expectRefused(answer, { code: 500, status: "INTERNAL", reason: "INTERNAL" });
      expect(answer.text).not.toMatch(/api_keys|relation|postgres/i);
      expect(suite.server.log()).toMatch(/relation \\?"api_keys\\?" does not exist/);
    } finally {
      await suite.sql`ALTER TABLE api_keys_renamed RENAME TO api_keys`;
    }
  });
});
