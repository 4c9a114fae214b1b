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
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { send } from "../support/wire.ts";

const suite = useService();
const { rest } = suite;

const KEY = { name: "n", actor_id: "a" };

const post = (path: string, body: string, type = "application/json") =>
  send(suite.server.url + path, "POST", body, { "content-type": type });

const MIB = 1024 * 1024;
const json = JSON.stringify(KEY);

describe("a body", () => {
  const TYPES = ["application/json", "application/json; charset=utf-8", 'APPLICATION/JSON;charset="UTF-8"'];
  test.each(table(TYPES))("of %s is accepted", async (type) => {
    expect((await post(paths.issued, json, type)).status).toBe(200);
  });

  test("with a member that occurs twice has its last value", async () => {
    const body = '{"name":"a","n\\u0061me":"b","actor_id":"a","metadata":{"team":"1","team":"2"}}';
    for (const path of [paths.issued, "/keyhold.v2alpha1.IssuedApiKeysService/CreateIssuedApiKey"]) {
      const { issued_api_key: key } = (await post(path, body)).body;
      expect(key).toMatchObject({ name: "b", metadata: { team: "2" } });
    }
  });

  const tooLarge: Expected = { code: 413, status: "RESOURCE_EXHAUSTED", reason: "BODY_TOO_LARGE" };
  const SIZES = [
    [`${paths.keys}:verify`, MIB, '{"credential":"c"}'],
    [paths.issued, MIB, json],
    [
      `${paths.imported}:batchCreate`,
      4 * MIB,
      '{"requests":[{"name":"n","actor_id":"a","raw_key":"of a large body"}]}',
    ],
  ] as const;

  test.each(table(SIZES))("of %s may have %d bytes, and one byte more is 413", async (path, size, body) => {
    succeeded(await post(path, body.padEnd(size)));
    expectRefused(await post(path, body.padEnd(size + 1)), tooLarge);
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
});

test("an error has a message, an HTTP code, an RPC status and a machine-readable reason", async () => {
  const answer = await rest("GET", `${paths.issued}/${UNKNOWN_KEY_ID}`);
  expectRefused(answer, notFound(UNKNOWN_KEY_ID));
  expect(Object.keys(answer.body)).toEqual(["error"]);
  expect(Object.keys(answer.body.error)).toEqual(["code", "message", "status", "details"]);
  expect(answer.headers.get("cache-control")).toBe("no-store");
});
