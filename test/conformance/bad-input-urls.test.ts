import { describe, expect, test } from "vitest";
import {
  type Expected,
  expectRefused,
  invalid,
  table,
  UNKNOWN_KEY_ID,
  useService,
  withQuery,
} from "../support/conformance.ts";
import { paths } from "../support/rest.ts";
import { expectNoChanges, REST_ROUTES, RPCS, rpcPath, send } from "../support/wire.ts";

const suite = useService();
expectNoChanges(suite);

const nowhere: Expected = { code: 404, status: "NOT_FOUND", reason: "PATH_NOT_FOUND" };
const malformed: Expected = { code: 400, status: "INVALID_ARGUMENT", reason: "URL_MALFORMED" };
const tooLarge: Expected = { code: 431, status: "INVALID_ARGUMENT", reason: "HEADER_TOO_LARGE" };
const wrongMethod: Expected = { code: 405, status: "UNIMPLEMENTED", reason: "METHOD_NOT_ALLOWED" };

const ask = (method: string, path: string) =>
  send(suite.server.url + path, method, method === "POST" || method === "PATCH" ? "{}" : undefined, {
    "content-type": "application/json",
  });

/** Path segments, already encoded. */
const IDS: readonly (readonly [what: string, id: string, refused: "id" | Expected])[] = [
  ["a word", "abc", "id"],
  ["a number", "1", "id"],
  ["minus one", "-1", "id"],
  ["null", "null", "id"],
  ["a UUID without a digit", UNKNOWN_KEY_ID.slice(1), "id"],
  ["a UUID with one more", `${UNKNOWN_KEY_ID}0`, "id"],
  ["a UUID without hyphens", UNKNOWN_KEY_ID.replaceAll("-", ""), "id"],
  ["a UUID in braces", `%7B${UNKNOWN_KEY_ID}%7D`, "id"],
  ["a UUID as a URN", `urn%3Auuid%3A${UNKNOWN_KEY_ID}`, "id"],
  ["a UUID with a space", `%20${UNKNOWN_KEY_ID}`, "id"],
  ["a UUID with a line break", `${UNKNOWN_KEY_ID}%0A`, "id"],
  ["a UUID in full-width digits", encodeURIComponent(UNKNOWN_KEY_ID.replace("0", "\uff10")), "id"],
  ["an encoded slash", "a%2Fb", "id"],
  ["an encoded backslash", "a%5Cb", "id"],
  ["encoded dots and a slash", "%2E%2E%2Fadmin", "id"],
  ["NUL", "a%00b", "id"],
  ["NUL after a UUID", `${UNKNOWN_KEY_ID}%00`, "id"],
  ["an encoded question mark", "a%3Fb", "id"],
  ["an encoded percent sign", "a%2500b", "id"],
  ["SQL", encodeURIComponent("' OR 1=1 --"), "id"],
  ["an unknown verb", "abc%3Arotate", "id"],
  ["4000 characters", "a".repeat(4000), "id"],
  ["a malformed escape", "a%zzb", malformed],
  ["half an escape", "a%2", malformed],
  ["a percent sign", "100%", malformed],
  ["invalid UTF-8", "%ff%fe", malformed],
  ["a surrogate in UTF-8", "%ED%A0%80", malformed],
  ["an overlong slash", "%C0%AF", malformed],
];

/** Well-formed UUIDs of any version and variant (RFC 9562 §4) that belong to no key. */
const UNKNOWN = [
  UNKNOWN_KEY_ID,
  UNKNOWN_KEY_ID.toUpperCase(),
  "00000000-0000-0000-0000-000000000000",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
  "0198b2a4-7d3e-fc52-a1f0-5c9a3b7e2d10",
  "0198b2a4-7d3e-7c52-e1f0-5c9a3b7e2d10",
  "0198b2a4-7d3e-0c52-01f0-5c9a3b7e2d10",
];

/** The ids of HMAC keys, actors and webhook endpoints are chosen by callers, and that of an event is a number. An adjustment requires more fields. */
const OTHER_IDS = /HmacKey|Actor|Webhook|AuditEvent|AdjustQuota/;
const WITH_ID = REST_ROUTES.filter(({ path, rpc }) => path("x") !== path("y") && !OTHER_IDS.test(rpc.name));

describe.each(table(WITH_ID))("$httpMethod of $rpc.name", ({ rpc, httpMethod, path }) => {
  const field = rpc.input.fields.find(({ message }) => message?.field.keyId)?.name;
  const keyId = field === undefined ? "key_id" : `${field}.key_id`;

  test("refuses every malformed identifier", async () => {
    // All paths parse their identifiers in the same code, so only the first runs the whole table.
    const few = rpc === WITH_ID[0]?.rpc ? IDS : IDS.filter((_, index) => index % 4 === 0);
    for (const [what, id, refused] of table(few)) {
      const answer = await ask(httpMethod, path(id));
      // Without a body, an update also lacks a field to change.
      const ofId = httpMethod === "PATCH" ? invalid(keyId, "update_mask") : invalid(keyId);
      const expected = refused === "id" ? ofId : refused;
      expect({ what, fields: answer.body?.error?.details?.[1]?.field_violations?.[0]?.field }).toEqual({
        what,
        fields: expected.fields?.[0],
      });
      expectRefused(answer, expected);
    }
  });

  test("answers NOT_FOUND for a well-formed unknown identifier", async () => {
    const body = field === undefined ? "{}" : '{"name":"a"}';
    const type = { "content-type": "application/json" };
    const hasBody = httpMethod === "POST" || httpMethod === "PATCH";
    for (const id of table(UNKNOWN)) {
      const answer = await send(suite.server.url + path(id), httpMethod, hasBody ? body : undefined, type);
      expect([id, answer.status, answer.body.error.status]).toEqual([id, 404, "NOT_FOUND"]);
    }
  });
});

const LISTS = [paths.issued, paths.imported];

/** The raw query and the field that the error names, shortened if it is longer than those of the query or not of words. */
const QUERIES: readonly (readonly [query: string, field: string])[] = [
  ["page_size=1&page_size=2", "page_size"],
  ["page_size=1&pageSize=1", "page_size"],
  ["filter=&filter=", "filter"],
  ["unknown=1", "unknown"],
  ["page-size=1", "page-size"],
  ["PAGE_SIZE=1", "PAGE_S…"],
  ["page_size[]=1", "page_s…"],
  ["page_size.a=1", "page_s…"],
  ["=1", ""],
  ["page_size", "page_size"],
  ["page_size=", "page_size"],
  ["page_size=-1", "page_size"],
  ["page_size=-2147483649", "page_size"],
  ["page_size=2147483648", "page_size"],
  ["page_size=99999999999999999999999", "page_size"],
  ["page_size=1.5", "page_size"],
  ["page_size=1e3", "page_size"],
  ["page_size=0x10", "page_size"],
  ["page_size=%2B1", "page_size"],
  ["page_size=NaN", "page_size"],
  ["page_size=Infinity", "page_size"],
  ["page_size=ten", "page_size"],
  ["page_size=%D9%A1", "page_size"],
  ["page_token=a", "page_token"],
  ["page_token=%00", "page_token"],
  [`page_token=${"A".repeat(44)}`, "page_token"],
  [`page_token=${"A".repeat(5000)}`, "page_token"],
  ["filter=%zz", "filter"],
  ["filter=%", "filter"],
  ["filter=%ff", "filter"],
  ["filter=%ED%A0%80", "filter"],
  ["filter=a%00b", "filter"],
  ["__proto__=1", "__proto__"],
  ["constructor=1", "constr…"],
  ["toString=1", "toString"],
];

describe.each(LISTS)("a list at %s", (path) => {
  test.each(table(QUERIES))("refuses the query %s", async (query, field) => {
    expectRefused(await ask("GET", `${path}?${query}`), invalid(field));
  });

  test("reports every unknown field of a query, up to 20", async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `a${index}`);
    expectRefused(await ask("GET", `${path}?${names.join("=&")}`), invalid(...names.slice(0, 20)));
  });
});

const MASKS = [
  "name,",
  ",",
  "name,,scopes",
  "name scopes",
  "a b",
  "name;scopes",
  "na\0me",
  "names",
  "*,owner",
  "key_id",
  "status",
  "metadata.team",
  "__proto__",
];

test.each(table(MASKS))("the update mask %j is refused on every transport", async (mask) => {
  const [, update] = RPCS.filter(({ name }) => name.startsWith("Update"));
  if (update === undefined) throw new Error("there is no second RPC of an update");
  const resource = { key_id: UNKNOWN_KEY_ID, name: "a" };
  const path = `${paths.imported}/${UNKNOWN_KEY_ID}`;
  expectRefused(await suite.rest("PATCH", withQuery(path, { update_mask: mask }), resource), invalid("update_mask"));
  expectRefused(
    await suite.rest("PATCH", path, { imported_api_key: resource, update_mask: mask }),
    invalid("update_mask"),
  );
  const connect = await suite.rest("POST", rpcPath(update), { imported_api_key: resource, update_mask: mask });
  expect([connect.status, connect.body.code]).toEqual([400, "invalid_argument"]);
  expect(connect.body.message).toMatch(/update_mask/);
});

const NOWHERE = [
  "/v2alpha1",
  "/v2alpha1/",
  "/v1/admin/issuedApiKeys",
  "/v2alpha1/admin/issuedApiKeys/",
  "//v2alpha1/admin/issuedApiKeys",
  `${paths.issued}/a/b`,
  `${paths.issued};a=b`,
  "/v2alpha1/admin/IssuedApiKeys",
  `/a/..${paths.issued}x`,
  "/health",
  "/.env",
  "/keyhold.v2alpha1.IssuedApiKeysService/",
  "/keyhold.v2alpha1.IssuedApiKeysService/Nothing",
  "/keyhold.v2alpha1.Nothing/GetIssuedApiKey",
];

test.each(table(NOWHERE))("%s is 404", async (path) => {
  expectRefused(await ask("GET", path), nowhere);
  expectRefused(await ask("POST", path), nowhere);
});

test.each(table(REST_ROUTES))(
  "$httpMethod of $rpc.name lists the allowed methods of its path",
  async ({ httpMethod, path }) => {
    const allowed = REST_ROUTES.filter((other) => other.path("a") === path("a")).map((other) => other.httpMethod);
    expect(allowed).toContain(httpMethod);
    for (const method of ["PUT", "GET", "POST", "PATCH", "DELETE"].filter((one) => !allowed.includes(one))) {
      const answer = await ask(method, path(UNKNOWN_KEY_ID));
      expectRefused(answer, wrongMethod);
      expect(answer.headers.get("allow")?.split(", ")).toEqual(expect.arrayContaining(allowed));
    }
  },
);

const LARGE: readonly (readonly [what: string, path: string, headers: Record<string, string>])[] = [
  ["a path of 20,000 characters", `${paths.issued}/${"a".repeat(20_000)}`, {}],
  ["a query of 20,000 characters", `${paths.issued}?filter=${"a".repeat(20_000)}`, {}],
  ["a header of 20,000 characters", paths.issued, { "x-large": "a".repeat(20_000) }],
  ["a token of 20,000 characters", paths.issued, { authorization: `Bearer ${"a".repeat(20_000)}` }],
  [
    "1500 headers",
    paths.issued,
    Object.fromEntries(Array.from({ length: 1500 }, (_, index) => [`x-${index}`, "abcdef"])),
  ],
];

test.each(table(LARGE))("%s is refused", async (_, path, headers) => {
  expectRefused(await send(suite.server.url + path, "GET", undefined, headers), tooLarge);
});
