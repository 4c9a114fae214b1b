import type { FileRegistry } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { InvalidReason } from "../../../src/domain/errors.ts";
import { send } from "./client.ts";
import { compileLibrary, messageOf, methodsOf } from "./library.ts";
import { serve, setFields, type TestServer } from "./server.ts";

let registry: FileRegistry;
let server: TestServer;

beforeAll(async () => {
  registry = await compileLibrary();
  server = await serve(methodsOf(registry));
});

afterAll(() => server.fastify.close());

type Taken = readonly [request: string, body: unknown, rpc: string, fields: object];
type Rejected = readonly [request: string, body: unknown, field: string, description: string];

const none = undefined;

const BATCH = "POST /v1/items:batch";

const GENRES = "must be one of GENRE_UNSPECIFIED, GENRE_NOVEL, GENRE_VERSE";
const TIME = "must be an RFC 3339 time such as 2030-01-02T03:04:05Z";
const MASK = "must be field names separated by commas";
const UNEQUAL = "has different values in the path and in the body";
const TWO_NAMES = "is set twice, under two names";
const UNKNOWN_PARAMETER = "is not a known query parameter";

const paths: readonly Taken[] = [
  ["GET /v1/items/abc", none, "Get", { name: "abc" }],
  ["GET /v1/items/a%3Ab%2Fc%20d%C3%A4%25", none, "Get", { name: "a:b/c dä%" }],
  ["GET /v1/items/a%00b", none, "Get", { name: "a\0b" }],
  ["GET /v1/items/%252F", none, "Get", { name: "%2F" }],
  ["GET /v1/items/a+b", none, "Get", { name: "a+b" }],
  ["GET /v1/items/..", none, "Get", { name: ".." }],
  ["GET /v1/items/a;b=c", none, "Get", { name: "a;b=c" }],
  ["GET http://example.com/v1/items/abc?size=1", none, "Get", { name: "abc", size: 1 }],
  ["GET /v1/items/abc?", none, "Get", { name: "abc" }],
  [`GET /v1/items/${"x".repeat(2000)}`, none, "Get", { name: "x".repeat(2000) }],
  ["POST /v1/items/abc:rotate", {}, "Rotate", { name: "abc" }],
  ["POST /v1/items/a%3Ab:rotate", {}, "Rotate", { name: "a:b" }],
  ["POST /v1/items/a%3Arotate", {}, "Post", { name: "a:rotate" }],
  ["POST /v1/items/a:other", {}, "Post", { name: "a:other" }],
  [BATCH, {}, "Batch", {}],
  ["GET /v1/shelves/a%2Fb%20c", none, "Shelves", { name: "a/b c" }],
  ["GET /v1/shelves/featured", none, "Shelves", { name: "featured" }],
  ["POST /v1/shelves/featured", {}, "Featured", {}],
  ["GET /v1/rooms/r%2F1/shelves/s%2F1", none, "Shelves", { name: "r/1", book: { title: "s/1" } }],
  ["POST /v1/alphas/x:revoke", {}, "Revoke", { name: "alphas", book: { title: "x" } }],
  ["POST /v1/betas/x:revoke", { size: 1 }, "Revoke", { name: "betas", book: { title: "x" }, size: 1 }],
  [
    "POST /v1/betas/x:revoke",
    { book: { genre: 1 } },
    "Revoke",
    { name: "betas", book: { title: "x", genre: "GENRE_NOVEL" } },
  ],
];

const queries: readonly Taken[] = [
  ["GET /v1/items?name=a+b%2Bc%26", none, "Search", { name: "a b+c&" }],
  ["GET /v1/items?&name=a&&size=-1&", none, "Search", { name: "a", size: -1 }],
  ["GET /v1/items?name=a=b", none, "Search", { name: "a=b" }],
  ["GET /v1/items?name", none, "Search", {}],
  ["GET /v1/items?na%6de=x", none, "Search", { name: "x" }],
  ["GET /v1/items?is_lent=true", none, "Search", { is_lent: true }],
  ["GET /v1/items?isLent=true", none, "Search", { is_lent: true }],
  ["GET /v1/items?genre=GENRE_NOVEL", none, "Search", { genre: "GENRE_NOVEL" }],
  ["GET /v1/items?tags=a&tags=b&tags=a&tags=", none, "Search", { tags: ["a", "b", "a", ""] }],
  ["GET /v1/items?pages=1&tags=x&pages=2", none, "Search", { pages: [1, 2], tags: ["x"] }],
  ["GET /v1/items?create_time=2030-01-02T03:04:05.678Z", none, "Search", { create_time: "2030-01-02T03:04:05.678Z" }],
  ["GET /v1/items?create_time=2030-01-02T03:04:05%2B01:00", none, "Search", { create_time: "2030-01-02T02:04:05Z" }],
  [
    "GET /v1/items?loan_times=2030-01-02T03:04:05Z&loanTimes=2031-01-02T03:04:05Z",
    none,
    "Search",
    { loan_times: ["2030-01-02T03:04:05Z", "2031-01-02T03:04:05Z"] },
  ],
  [
    "GET /v1/items?read_mask=name,is_lent,book.author_name",
    none,
    "Search",
    { read_mask: "name,isLent,book.authorName" },
  ],
  ["GET /v1/items?readMask=name,isLent", none, "Search", { read_mask: "name,isLent" }],
  ["GET /v1/items?read_mask=*", none, "Search", { read_mask: "*" }],
  ["GET /v1/items?note=", none, "Search", { note: "" }],
  ["DELETE /v1/items/abc?note=x", none, "Delete", { name: "abc", note: "x" }],
  ["GET /v1/items?genres=GENRE_VERSE&genres=GENRE_NOVEL", none, "Search", { genres: ["GENRE_VERSE", "GENRE_NOVEL"] }],
];

const wrongQueries: readonly Rejected[] = [
  ["GET /v1/items?bogus=1", none, "bogus", UNKNOWN_PARAMETER],
  ["GET /v1/items?Name=1", none, "Name", "is not a known query parameter; did you mean name?"],
  ["GET /v1/items?book.bogus=1", none, "book.bogus", UNKNOWN_PARAMETER],
  ["GET /v1/items?name.x=1", none, "name.x", "is not a known query parameter; did you mean name?"],
  ["GET /v1/items?books.title=1", none, "books.title", UNKNOWN_PARAMETER],
  ["GET /v1/items?create_time.seconds=1", none, "create…", UNKNOWN_PARAMETER],
  ["GET /v1/items?book.=1", none, "book.", UNKNOWN_PARAMETER],
  ["GET /v1/items?=1", none, "", UNKNOWN_PARAMETER],
  ["GET /v1/items?__proto__=1", none, "__proto__", UNKNOWN_PARAMETER],
  ["GET /v1/items?constructor.name=1", none, "constr…", UNKNOWN_PARAMETER],
  ["GET /v1/items?tags[]=1", none, "tags[]", "is not a known query parameter; did you mean tags?"],
  ["GET /v1/items?name=a&name=a", none, "name", "is set twice"],
  ["GET /v1/items?is_lent=true&isLent=true", none, "is_lent", "is set twice"],
  ["GET /v1/items?book.title=a", none, "book.title", UNKNOWN_PARAMETER],
  ["GET /v1/items?genre=2", none, "genre", GENRES],
  ["GET /v1/items?size=", none, "size", "must be a 32-bit integer"],
  ["GET /v1/items?size=1.5", none, "size", "must be a 32-bit integer"],
  ["GET /v1/items?size=+1", none, "size", "must be a 32-bit integer"],
  ["GET /v1/items?pages=1&pages=x", none, "pages", "must be a 32-bit integer"],
  ["GET /v1/items?is_lent=1", none, "is_lent", "must be true or false"],
  ["GET /v1/items?is_lent", none, "is_lent", "must be true or false"],
  ["GET /v1/items?genre=", none, "genre", GENRES],
  ["GET /v1/items?genre=genre_novel", none, "genre", GENRES],
  ["GET /v1/items?create_time=yesterday", none, "create_time", TIME],
  ["GET /v1/items?create_time=2030-02-30T00:00:00Z", none, "create_time", TIME],
  ["GET /v1/items?create_time=", none, "create_time", TIME],
  ["GET /v1/items?read_mask=a,,b", none, "read_mask", MASK],
  ["GET /v1/items?read_mask=a,+b", none, "read_mask", MASK],
  ["GET /v1/items?books=x", none, "books", "must not be set in the query"],
  ["GET /v1/items?book=x", none, "book", "must not be set in the query"],
  ["GET /v1/items?labels=x", none, "labels", "must not be set in the query"],
  ["GET /v1/items?labels.a=x", none, "labels.a", UNKNOWN_PARAMETER],
  ["GET /v1/items?extra=x", none, "extra", "must be an object"],
  ["GET /v1/items?name=%", none, "name", "has a malformed percent-encoding"],
  ["GET /v1/items?name=%ff", none, "name", "has a malformed percent-encoding"],
  ["GET /v1/items?%=1", none, "%", "has a malformed percent-encoding"],
  ["GET /v1/items/abc?name=abc", none, "name", "must not be set in the query"],
  ["POST /v1/items/abc?size=1", {}, "size", "must be set in the body, not in the query"],
  ["POST /v1/items/abc:rotate?bogus=1", {}, "bogus", "must be set in the body, not in the query"],
  ["PUT /v1/items/abc?book=x", {}, "book", "must not be set in the query"],
];

const bodies: readonly Taken[] = [
  ["POST /v1/items/abc", none, "Post", { name: "abc" }],
  ["POST /v1/items/abc:rotate", none, "Rotate", { name: "abc" }],
  ["POST /v1/items/abc", { name: "abc", size: 5 }, "Post", { name: "abc", size: 5 }],
  ["POST /v1/items/abc", { name: "", isLent: true, loan_times: [] }, "Post", { name: "abc", is_lent: true }],
  [BATCH, { labels: { a: "b", "": "", constructor: "c" } }, "Batch", { labels: { a: "b", "": "", constructor: "c" } }],
  [BATCH, '{"labels": {"__proto__": "x"}}', "Batch", JSON.parse('{"labels": {"__proto__": "x"}}')],
  [BATCH, { readMask: "isLent", book: {} }, "Batch", { read_mask: "isLent", book: {} }],
  [BATCH, { read_mask: "is_lent,book.author_name" }, "Batch", { read_mask: "isLent,book.authorName" }],
  [BATCH, '\ufeff{"size": 1}', "Batch", { size: 1 }],
  [BATCH, '{"size": 1, "size": 2}', "Batch", { size: 2 }],
  [
    "PUT /v1/items/abc?size=1",
    { title: "x", authorName: "y" },
    "Put",
    { name: "abc", size: 1, book: { title: "x", author_name: "y" } },
  ],
  ["PUT /v1/items/abc", {}, "Put", { name: "abc", book: {} }],
  ["PUT /v1/items/abc", none, "Put", { name: "abc" }],
  ["PUT /v1/items/abc", "null", "Put", { name: "abc" }],
  ["POST /v1/items/abc/tags", ["a", "b"], "SetTags", { name: "abc", tags: ["a", "b"] }],
  ["POST /v1/items/abc/size?tags=x", "5", "SetSize", { name: "abc", size: 5, tags: ["x"] }],
  [BATCH, { size: null, tags: null, book: null, genre: 2 }, "Batch", { genre: "GENRE_VERSE" }],
  [BATCH, { extra: { a: [1, null, { b: true }] } }, "Batch", { extra: { a: [1, null, { b: true }] } }],
];

const wrongBodies: readonly Rejected[] = [
  [BATCH, "{", "body", "is not JSON at line 1, column 2"],
  [BATCH, new Uint8Array([0x22, 0xff, 0x22]), "body", "is not UTF-8"],
  [BATCH, "[]", "body", "must be a JSON object"],
  [BATCH, '"x"', "body", "must be a JSON object"],
  [BATCH, "null", "body", "must be a JSON object"],
  [BATCH, `{"extra":${'{"a":'.repeat(100)}`, "body", "is nested deeper than 100"],
  [BATCH, { bogus: 1 }, "bogus", "is not a known field"],
  [BATCH, { "bo gus": 1 }, '["bo gus"]', "is not a known field"],
  [BATCH, { [`x${"y".repeat(200)}`]: 1 }, `["xyyyyy…"]`, "is not a known field"],
  [BATCH, '{"__proto__":{"size":1}}', "__proto__", "is not a known field"],
  [BATCH, { constructor: 1 }, "constructor", "is not a known field"],
  [BATCH, { "[keyhold.test.library.x]": 1 }, '["[keyho…"]', "is not a known field"],
  [
    BATCH,
    { books: [{}, { sequel: { labels: { x: "y", foo: 1 } } }] },
    "books[1].sequel.labels.foo",
    "must be a string",
  ],
  [BATCH, { books: [{}, { sequel: { bogus: 1 } }] }, "books[1].sequel.bogus", "is not a known field"],
  [BATCH, { isLent: true, is_lent: true }, "is_lent", TWO_NAMES],
  [BATCH, { book: { authorName: "a", author_name: "a" } }, "book.author_name", TWO_NAMES],
  [BATCH, { is_lent: "true" }, "is_lent", "must be true or false"],
  [BATCH, { name: 5 }, "name", "must be a string"],
  [BATCH, { name: ["x"] }, "name", "must be a string"],
  [BATCH, { size: 1.5 }, "size", "must be a 32-bit integer"],
  [BATCH, { tags: "a" }, "tags", "must be an array"],
  [BATCH, { tags: ["a", "b", 3] }, "tags[2]", "must be a string"],
  [BATCH, { tags: ["a", null] }, "tags[1]", "must be a string"],
  [BATCH, { books: [null] }, "books[0]", "must be an object"],
  [BATCH, { book: [] }, "book", "must be an object"],
  [BATCH, { book: "x" }, "book", "must be an object"],
  [BATCH, { labels: [] }, "labels", "must be an object"],
  [BATCH, { labels: { a: null } }, "labels.a", "must be a string"],
  [BATCH, { genre: "NOVEL" }, "genre", GENRES],
  [BATCH, { genres: ["GENRE_VERSE", "NOVEL"] }, "genres[1]", GENRES],
  [BATCH, { create_time: "2030-01-02" }, "create_time", TIME],
  [BATCH, { loan_times: ["2032-02-29T00:00:00Z", "2031-02-29T00:00:00+14:00"] }, "loan_times[1]", TIME],
  [BATCH, { create_time: { seconds: 1 } }, "create_time", TIME],
  [BATCH, { read_mask: "a,,b" }, "read_mask", MASK],
  [BATCH, { extra: [] }, "extra", "must be an object"],
  ["POST /v1/items/abc", { name: "abd" }, "name", UNEQUAL],
  ["POST /v1/alphas/x:revoke", { name: "betas" }, "name", UNEQUAL],
  ["POST /v1/alphas/x:revoke", { book: { title: "y" } }, "book.title", UNEQUAL],
  ["PUT /v1/items/abc", { bogus: 1 }, "book.bogus", "is not a known field"],
  ["PUT /v1/items/abc", [], "book", "must be an object"],
  ["POST /v1/items/abc/tags", ["a", 1], "tags[1]", "must be a string"],
  ["POST /v1/items/abc/tags", {}, "tags", "must be an array"],
  ["GET /v1/items/abc", {}, "body", "must be empty"],
  ["DELETE /v1/items/abc", "x", "body", "must be empty"],
];

/** PATCH of a book with the resource bare or wrapped, and its implied mask (AIP-134): the query, the body, the book besides its title. */
const bookUpdates: readonly (readonly [query: string, body: unknown, book: object, more?: object])[] = [
  ["", { author_name: "y" }, { author_name: "y" }, { update_mask: "authorName" }],
  ["", { authorName: "y", topics: [] }, { author_name: "y" }, { update_mask: "authorName,topics" }],
  ["", { title: "x", genre: null }, {}, { update_mask: "genre" }],
  ["", { book: { topics: [] } }, {}, { update_mask: "topics" }],
  ["", { book: { title: "x", topics: ["a"] } }, { topics: ["a"] }, { update_mask: "topics" }],
  ["", { book: { topics: ["a"] }, update_mask: "author_name" }, { topics: ["a"] }, { update_mask: "authorName" }],
  ["", { updateMask: "authorName" }, {}, { update_mask: "authorName" }],
  ["", { book: { topics: ["a"] }, update_mask: "" }, { topics: ["a"] }, { update_mask: "topics" }],
  ["?update_mask=topics,author_name", { topics: ["a"] }, { topics: ["a"] }, { update_mask: "topics,authorName" }],
  [
    "?update_mask=topics",
    { book: { title: "x", topics: ["a"], genre: 1 } },
    { topics: ["a"], genre: "GENRE_NOVEL" },
    { update_mask: "topics" },
  ],
  ["?updateMask=*", { book: {}, allow_missing: true }, {}, { update_mask: "*", allow_missing: true }],
  ["?update_mask=", { topics: ["a"] }, { topics: ["a"] }, { update_mask: "topics" }],
  ["?allow_missing=true", { topics: ["a"] }, { topics: ["a"] }, { update_mask: "topics", allow_missing: true }],
  ["?update_mask=topics", {}, {}, { update_mask: "topics" }],
  ["", {}, {}],
  ["", none, {}],
];

const updates: readonly Taken[] = [
  ...bookUpdates.map(
    ([query, body, book, more]): Taken => [
      `PATCH /v1/books/x${query}`,
      body,
      "UpdateBook",
      { book: { title: "x", ...book }, ...more },
    ],
  ),
  [
    "PATCH /v1/wholeBooks/x",
    { book: { authorName: "y" } },
    "UpdateWhole",
    { book: { title: "x", author_name: "y" }, update_mask: "authorName" },
  ],
  ["PATCH /v1/anyBook", {}, "UpdateAny", { book: {} }],
  ["PATCH /v1/anyBook", none, "UpdateAny", {}],
  ["PATCH /v1/anyBook", { book: null }, "UpdateAny", {}],
  ["PUT /v1/books/x", { authorName: "y" }, "ReplaceBook", { book: { title: "x", author_name: "y" } }],
];

const wrongUpdates: readonly Rejected[] = [
  ["PATCH /v1/books/x", { book: {}, bogus: 1 }, "bogus", "is not a known field"],
  ["PATCH /v1/books/x", { bogus: 1 }, "book.bogus", "is not a known field"],
  ["PATCH /v1/books/x", { book: { bogus: 1 } }, "book.bogus", "is not a known field"],
  ["PATCH /v1/books/x", { title: "y" }, "book.title", UNEQUAL],
  ["PATCH /v1/books/x", { book: { title: "y" } }, "book.title", UNEQUAL],
  ["PATCH /v1/books/x?update_mask=topics", { book: {}, update_mask: "topics" }, "update_mask", "is set twice"],
  ["PATCH /v1/books/x?book=a", { authorName: "y" }, "book", "must not be set in the query"],
  ["PATCH /v1/books/x?bogus=a", { authorName: "y" }, "bogus", UNKNOWN_PARAMETER],
  ["PATCH /v1/books/x", [], "book", "must be an object"],
];

describe.each([
  ["path", paths],
  ["query", queries],
  ["body", bodies],
  ["update", updates],
] as const)("%s", (_, samples) => {
  test.each(samples)("%s %j", async (request, body, rpc, fields) => {
    const count = server.invoked.length;
    const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    const answer = await send(server.port, request, { body, headers });
    expect(answer.text).not.toContain('"error"');
    expect(server.invoked.slice(count).map((call) => call.rpc)).toEqual([rpc]);
    const message = server.invoked[count]?.request;
    if (message === undefined) throw new Error("nothing was invoked");
    const desc = registry.getMessage(message.$typeName) ?? messageOf(registry, "Item");
    expect(setFields(desc, message, registry)).toEqual(fields);
  });

  test("the list of samples is complete", () => expect(samples.length).toBeGreaterThan(14));
});

/** The reason of each description. */
const REASONS: readonly (readonly [description: RegExp, reason: InvalidReason])[] = [
  [/^is not a known /, "UNKNOWN_FIELD"],
  [/^is set twice/, "DUPLICATE_FIELD"],
  [/^must be one of /, "UNKNOWN_ENUM_VALUE"],
  [/^must not be set|^must be set in|^cannot be set|^must be empty|^has different/, "VALUE_NOT_ALLOWED"],
  [/percent-encoding$|^is not JSON at /, "INVALID_FORMAT"],
  [/^is not UTF-8$/, "INVALID_CHARACTER"],
  [/^is nested /, "TOO_LARGE"],
  [/^must be (?:a|an|true) /, "WRONG_TYPE"],
];

/** A value of these may also have a wrong type. */
const TEXT_FORM = /^must be an RFC 3339 time|^must be field names/;

function reasonOf(description: string) {
  if (TEXT_FORM.test(description)) return expect.toBeOneOf(["INVALID_FORMAT", "WRONG_TYPE"]);
  const [, reason] = REASONS.find(([pattern]) => pattern.test(description)) ?? [];
  return reason ?? expect.unreachable();
}

describe.each([
  ["query", wrongQueries],
  ["body", wrongBodies],
  ["update", wrongUpdates],
] as const)("a wrong %s", (_, samples) => {
  test.each(samples)("%s %j", async (request, body, field, description) => {
    const count = server.invoked.length;
    const answer = await send(server.port, request, { body, headers: { "content-type": "application/json" } });
    expect(answer.status).toBe(400);
    expect(answer.json()).toEqual({
      error: {
        code: 400,
        message: `${field}: ${description}`,
        status: "INVALID_ARGUMENT",
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "INVALID_ARGUMENT",
            domain: "keyhold",
            metadata: {},
          },
          {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            field_violations: [{ field, description, reason: reasonOf(description) }],
          },
        ],
      },
    });
    expect(server.invoked.length).toBe(count);
  });

  test("the list of samples is complete", () => expect(samples.length).toBeGreaterThan(8));
});
