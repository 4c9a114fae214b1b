import { equals, type FileRegistry, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { character } from "./characters.ts";
import { send } from "./client.ts";
import { compileLibrary, messageOf, methodsOf } from "./library.ts";
import { serve, type TestServer } from "./server.ts";

let registry: FileRegistry;
let server: TestServer;

beforeAll(async () => {
  registry = await compileLibrary();
  server = await serve(methodsOf(registry));
});

afterAll(() => server.fastify.close());

const text = fc.string({ unit: character, maxLength: 12 });
const word = fc.string({ unit: character, minLength: 1, maxLength: 12 });
const genre = fc.constantFrom("GENRE_NOVEL", "GENRE_VERSE");
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const instant = fc.date({
  min: new Date("0001-01-01T00:00:00Z"),
  max: new Date("9999-12-31T23:59:59Z"),
  noInvalidDate: true,
});
const time = instant.map((date) => date.toISOString());
const mask = fc
  .array(fc.constantFrom("name", "isLent", "book.authorName", "create_time"), { minLength: 1 })
  .map(String);

/** Fields that a query can carry, in ProtoJSON. */
const inQuery = {
  size: int32,
  is_lent: fc.boolean(),
  genre,
  tags: fc.array(text, { maxLength: 3 }),
  pages: fc.array(int32, { maxLength: 3 }),
  genres: fc.array(genre, { maxLength: 3 }),
  create_time: time,
  read_mask: mask.map((paths) => paths.replaceAll("create_time", "createTime")),
  note: text,
  loan_times: fc.array(time, { maxLength: 3 }),
};

const labels = fc.dictionary(text, text, { maxKeys: 3 });
const deepBook = fc.letrec<{ book: object }>((tie) => ({
  book: fc.record(
    {
      title: text,
      author_name: text,
      topics: fc.array(text, { maxLength: 3 }),
      labels,
      sequel: fc.option(tie("book"), { nil: undefined, maxDepth: 3, depthIdentifier: "sequel" }),
    },
    { requiredKeys: [] },
  ),
})).book;
const anyBook = deepBook.map(toObject);

/** Fields that only JSON can carry. */
const inBody = {
  book: anyBook,
  books: fc.array(anyBook, { maxLength: 2 }),
  labels,
  extra: fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 2 }),
};

const queryFields = fc.record(inQuery, { requiredKeys: [] }).map(toObject);
const bodyFields = fc.record({ ...inQuery, ...inBody }, { requiredKeys: [] }).map(toObject);

function toObject(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value));
}

/** Which of its two names a client uses for each field. */
const naming = fc.infiniteStream(fc.boolean());

type Naming = Iterator<boolean>;

function rename(name: string, names: Naming): string {
  return names.next().value ? name : name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function toQuery(fields: JsonObject, names: Naming): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    const path = rename(name, names);
    return Array.isArray(value) ? value.map((item) => pair(path, item)) : [pair(path, value)];
  });
}

function pair(path: string, value: JsonValue): string {
  return new URLSearchParams([[path, String(value)]]).toString();
}

function toPath(segments: readonly JsonValue[]): string {
  return segments.map((segment) => encodeURIComponent(String(segment))).join("/");
}

/** Renames the top-level members of `fields` to one of their two names; nested names stay. */
function toBody(fields: JsonObject, names: Naming): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [rename(name, names), value]));
}

async function expectReceived(line: string, body: JsonValue | undefined, fields: JsonObject): Promise<void> {
  const item = messageOf(registry, "Item");
  const answer = await send(server.port, line, body === undefined ? {} : { body: body ?? {} });
  expect(answer.status, answer.text).toBe(200);
  const received = server.invoked.pop()?.request;
  const expected = fromJson(item, fields);
  if (received === undefined || !equals(item, received, expected)) expect(received).toEqual(expected);
  expect(fromJson(item, answer.json())).toEqual(expected);
}

const runs = { numRuns: 60 };

test("a message in the query arrives unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(queryFields, naming, async (fields, names) => {
      await expectReceived(`GET /v1/items?${toQuery(fields, names).join("&")}`, undefined, fields);
    }),
    runs,
  );
});

test("a message in the path and the query arrives unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(word, queryFields, naming, async (name, fields, names) => {
      const line = `GET /v1/items/${toPath([name])}?${toQuery(fields, names).join("&")}`;
      await expectReceived(line, undefined, { ...fields, name });
    }),
    runs,
  );
});

test("strings of a nested message in the path arrive unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(word, word, async (name, title) => {
      await expectReceived(`GET /v1/rooms/${toPath([name])}/shelves/${toPath([title])}`, undefined, {
        name,
        book: { title },
      });
    }),
    runs,
  );
});

test("a message in the path and the body arrives unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(word, bodyFields, naming, fc.boolean(), fc.boolean(), async (name, fields, names, twice, verb) => {
      const body = toBody(twice ? { ...fields, name } : fields, names);
      await expectReceived(`POST /v1/items/${toPath([name])}${verb ? ":rotate" : ""}`, body, { ...fields, name });
    }),
    runs,
  );
});

test("a message in the path, the query and the body arrives unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(word, queryFields, anyBook, naming, async (name, fields, book, names) => {
      const line = `PUT /v1/items/${toPath([name])}?${toQuery(fields, names).join("&")}`;
      await expectReceived(line, toBody(book, names), { ...fields, name, book });
    }),
    runs,
  );
});
