import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { expect, test } from "vitest";
import { csvFormat } from "../../../src/cli/import/csv.ts";
import { type Format, jsonLines, MAX_ROW_BYTES, type Row, readRows } from "../../../src/cli/import/records.ts";
import { requestOf as requestIn } from "../../../src/cli/import/request.ts";
import { table } from "../../support/conformance.ts";

async function rowsOf(format: Format, bytes: Buffer, { chunk = bytes.length || 1 } = {}): Promise<Row[]> {
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk);
  }
  return (await Array.fromAsync(readRows(chunks(), format))).flat();
}

/** Rows whose columns are named like fields. */
const PLAIN_ROWS = { columns: null, hash: {} };
const requestOf = (row: Row) => requestIn(row, PLAIN_ROWS);

const HEADER = ["raw_key", "name", "actor_id", "metadata.a", "metadata.b"];

const cell = fc.string({ unit: fc.constantFrom("a", "é", "😀", '"', ",", "\n", "\r\n", " ", ";"), maxLength: 8 });
const line = fc.string({ unit: fc.constantFrom("a", "é", "😀", '"', ",", " ", ";"), maxLength: 8 });
const quote = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const csvFile = fc
  .tuple(
    fc.array(fc.tuple(line, line, line, cell, cell), { maxLength: 8 }),
    fc.constantFrom("\n", "\r\n"),
    fc.constantFrom("", "\uFEFF"),
  )
  .map(([rows, end, mark]) => mark + [HEADER, ...rows].map((row) => row.map(quote).join(",") + end).join(""));

const contents = (rows: readonly Row[]) => rows.map(({ content }) => content);

test("reads CSV however it is split into chunks", async () => {
  await fc.assert(
    fc.asyncProperty(csvFile, fc.integer({ min: 1, max: 40 }), async (text, chunk) => {
      const rows = await rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(text), { chunk });
      const all = parse<Record<string, string>>(text, { bom: true, columns: true });
      const expected = all.filter((row) => Object.values(row).some((one) => one.trim() !== ""));
      const isRefused = (row: Record<string, string>) => Object.values(row).some((one) => /\n.*,|,.*\n/s.test(one));
      for (const [index, content] of contents(rows).entries()) {
        if (typeof content === "string") expect(expected[index]).toSatisfy(isRefused);
        else expect(content).toEqual(expected[index]);
      }
      expect(rows.length).toBe(expected.length);
    }),
  );
});

test("a row has its line number", async () => {
  const csv = 'raw_key,name,actor_id,metadata.a\r\n\r\na,x,y,"a\r\nb"\r\n,,,\r\nc,x,y,';
  expect((await rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(csv))).map(({ row, line }) => [row, line])).toEqual([
    [1, 3],
    [2, 6],
  ]);
  const lines = "\uFEFF{}\n\n{}";
  expect((await rowsOf(jsonLines, Buffer.from(lines))).map(({ row, line }) => [row, line])).toEqual([
    [1, 1],
    [2, 3],
  ]);
});

test("an oversized row is a failure and is not buffered", async () => {
  const bytes = Buffer.from(`{}\n${"x".repeat(3 * MAX_ROW_BYTES)}\n{}\n`);
  const rows = await rowsOf(jsonLines, bytes, { chunk: 65_536 });
  expect(contents(rows)).toEqual([{}, expect.stringMatching(/has more than \d+ bytes/), {}]);
  expect(rows.map(({ line }) => line)).toEqual([1, 2, 3]);
});

const KEY = "sk_live_0123456789abcdef";

const BAD_ROWS: readonly (readonly [string, string | Buffer])[] = [
  ["is not JSON", `{"raw_key":"${KEY}",}`],
  ["is not a JSON object", `["${KEY}"]`],
  ["is not UTF-8", Buffer.from(`{"raw_key":"${KEY}\xff"}`, "latin1")],
  ["raw_key: is required without raw_key_hash", '{"name":"a","actor_id":"b"}'],
  ["raw_key: must be a string", '{"raw_key":5,"name":"a","actor_id":"b"}'],
  ["actor_id: is required", `{"raw_key":"${KEY}","name":"a"}`],
  ["colour: is an unknown field; allowed: raw_key", `{"raw_key":"${KEY}","name":"a","actor_id":"b","colour":"${KEY}"}`],
  ["sk_liv…: is an unknown field", `{"raw_key":"${KEY}","name":"a","actor_id":"b","${KEY}":""}`],
  ["scopes[0]: must be a string", `{"raw_key":"${KEY}","name":"a","actor_id":"b","scopes":[1]}`],
  ["scopes[0]: must be visible ASCII", `{"raw_key":"${KEY}","name":"a","actor_id":"b","scopes":["a b"]}`],
  ['scopes: contains ","', `{"raw_key":"${KEY}","name":"a","actor_id":"b","scopes":"read,write"}`],
  ["metadata.a: is set twice", `{"raw_key":"${KEY}","name":"a","actor_id":"b","metadata":{"a":"1"},"metadata.a":"2"}`],
  ["ttl: must be a duration", `{"raw_key":"${KEY}","name":"a","actor_id":"b","ttl":"${KEY}"}`],
  ["expire_time: must be an RFC 3339 time", `{"raw_key":"${KEY}","name":"a","actor_id":"b","expire_time":"${KEY}"}`],
  ["expire_time: must be", `{"raw_key":"${KEY}","name":"a","actor_id":"b","expire_time":"2020-01-02T00:00:00Z"}`],
  [
    "expire_time: must not be set together with ttl",
    `{"raw_key":"${KEY}","name":"a","actor_id":"b","ttl":"1h","expire_time":"2999-01-02T00:00:00Z"}`,
  ],
  ["metadata.a: must be a string", `{"raw_key":"${KEY}","name":"a","actor_id":"b","metadata":{"a":1}}`],
  ["ip_restriction: must be an object", `{"raw_key":"${KEY}","name":"a","actor_id":"b","ip_restriction":["${KEY}"]}`],
  [
    "ip_restriction.allowed_cidrs[0]: must be an IPv4 or IPv6 address",
    `{"raw_key":"${KEY}","name":"a","actor_id":"b","ip_restriction":{"allowed_cidrs":["${KEY}"]}}`,
  ],
  ["raw_key: must not contain the character NUL", `{"raw_key":"${KEY}\\u0000","name":"a","actor_id":"b"}`],
];

test.each(table(BAD_ROWS))("invalid row: %s", async (problem, line) => {
  const [row] = await rowsOf(jsonLines, Buffer.from(line));
  const said = row === undefined ? "no row" : requestOf(row);
  expect(said).toEqual(expect.stringContaining(problem));
  expect(said).not.toContain(KEY);
});

test("maps CSV cells to the fields of a key", async () => {
  const csv = `raw_key,name,actor_id,scopes,ttl,metadata.env,metadata.a b\n${KEY},"a, b",c,read write,,prod,\n${KEY},n,c,"[""x""]",1h,,z`;
  const [first, second] = (await rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(csv))).map(requestOf);
  expect(first).toMatchObject({ name: "a, b", scopes: ["read", "write"], metadata: { env: "prod" } });
  expect(first).not.toHaveProperty("ttl");
  expect(second).toMatchObject({ scopes: ["x"], ttl: "1h", metadata: { "a b": "z" } });
});

test("reads the expiry of a row from a CSV cell, and from JSON as in the API", async () => {
  const csv = `raw_key,name,actor_id,expire_time\n${KEY},n,c,2030-01-02T03:04:05+01:00\n${KEY},n,c,\n`;
  const json = `{"raw_key":"${KEY}","name":"n","actor_id":"c","expire_time":"2030-01-02T02:04:05Z"}`;
  const [first, second] = (await rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(csv))).map(requestOf);
  const [third] = (await rowsOf(jsonLines, Buffer.from(json))).map(requestOf);
  for (const request of [first, third]) {
    expect(request).toHaveProperty("expireTime.seconds", BigInt(Date.parse("2030-01-02T02:04:05Z") / 1000));
  }
  expect(second).not.toHaveProperty("expireTime");
});

test("reads the addresses of a row from a CSV cell, and from JSON as in the API", async () => {
  const csv = `raw_key,name,actor_id,ip_restriction\n${KEY},n,c,10.0.0.0/8  ::1\n${KEY},n,c,\n`;
  const json = `{"raw_key":"${KEY}","name":"n","actor_id":"c","ip_restriction":{"allowed_cidrs":["10.0.0.0/8","::1"]}}`;
  const [first, second] = (await rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(csv))).map(requestOf);
  const [third] = (await rowsOf(jsonLines, Buffer.from(json))).map(requestOf);
  for (const request of [first, third]) {
    expect(request).toMatchObject({ ipRestriction: { allowedCidrs: ["10.0.0.0/8", "::1"] } });
  }
  expect(second).not.toHaveProperty("ipRestriction");
});

const CELLS_OF_SCOPES: readonly (readonly [string, readonly string[] | RegExp])[] = [
  ['"read,write"', /^scopes: contains ","; separate scopes with spaces, or use a JSON array$/],
  ['"read, write"', /^scopes: contains ","/],
  ["read;write", /^scopes: contains ";"/],
  ["read|write", /^scopes: contains "\|"/],
  ["[read]", /^scopes: must be a list of strings/],
  ['" read  write "', ["read", "write"]],
  ['"[""read,write"", ""a""]"', ["read,write", "a"]],
  ["", []],
];

test.each(table(CELLS_OF_SCOPES))("scopes in a cell: %s", async (cell, expected) => {
  const [row] = await rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(`raw_key,name,actor_id,scopes\n${KEY},a,b,${cell}\n`));
  const request = row === undefined ? "no row" : requestOf(row);
  if (expected instanceof RegExp) expect(request).toEqual(expect.stringMatching(expected));
  else expect(request).toMatchObject({ scopes: expected });
});

const SWALLOWED = "a quote joins lines 3 to 5 into one row; none of these lines is imported";
const SPREADSHEET = "was reformatted by a spreadsheet";

const BAD_CSV: readonly (readonly [problem: string, lines: string | Buffer])[] = [
  ["has a misplaced quote", `${KEY}"x,a,b`],
  ["has a misplaced quote", `"${KEY}"x,a,b`],
  [`has a misplaced quote: ${SWALLOWED}`, `"${KEY},a,b\r\n${KEY},""a,b\r\n${KEY},"a,b`],
  ["has 2 cells for 4 columns", `${KEY},a`],
  ["is not UTF-8", Buffer.from(`${KEY}\xff,a,b,`, "latin1")],
  [`name: contains a line break: ${SWALLOWED}`, `1,"a,b,\n${KEY},a,b,\n${KEY},a",b,`],
  [`raw_key: contains a line break: ${SWALLOWED}`, `"1,a,b,\n${KEY},a,b,\n${KEY}",a,b,`],
  [`actor_id: contains a line break: ${SWALLOWED}`, `1,a,"b,\r\n${KEY},a,b,\r\n${KEY},a,b",`],
  [`metadata.a: contains a line break: ${SWALLOWED}`, `1,a,b,"\n${KEY},a,b,\n${KEY},a,b,"`],
  [`metadata.a: contains a line break: ${SWALLOWED}`, `1,a,b,"c\n${KEY},a,b,c\n"`],
  ["name: contains a line break", `${KEY},"a\rb",c,`],
  ...["7.39E+07", "1,5E-10", "#REF!", "#N/A", "#NAME?", "########", "73,928,030", "73.928.030", "7-Mar"].map(
    (cell) => [`raw_key: ${SPREADSHEET}`, `"${cell}",a,b,`] as const,
  ),
  [`actor_id: ${SPREADSHEET}`, `${KEY},a,7.39E+07,`],
];

test.each(table(BAD_CSV))("an invalid CSV row %s; rows around it are read", async (problem, lines) => {
  const start = "raw_key,name,actor_id,metadata.a\n1,2,3,4\n";
  const file = Buffer.concat([start, lines, "\n1,2,3,4\n"].map((part) => Buffer.from(part)));
  const rows = await rowsOf(csvFormat(PLAIN_ROWS), file);
  expect(contents(rows)).toEqual([expect.anything(), expect.stringContaining(problem), expect.anything()]);
  expect(contents(rows)[1]).not.toContain(KEY);
});

const FIELDS = ["raw_key", "name", "actor_id", "metadata.a"];
const stray = fc.record({
  cell: fc.nat(),
  at: fc.constantFrom(0, 3, Number.POSITIVE_INFINITY),
  text: fc.constantFrom('"', '"', '""'),
});

/** Whether a line is in a row. The message of a row of several lines names them. */
function isIn({ line, content }: Row, wanted: number): boolean {
  const [, last = line] = /lines \d+ to (\d+)/.exec(String(content)) ?? [];
  return line <= wanted && wanted <= Number(last);
}

test("whatever stray quotes do, each line is imported as it is, or is named by a failure", async () => {
  const files = fc.tuple(fc.shuffledSubarray(FIELDS, { minLength: 4 }), fc.integer({ min: 1, max: 6 }));
  await fc.assert(
    fc.asyncProperty(files, fc.array(stray, { maxLength: 4 }), async ([header, count], quotes) => {
      const expected = Array.from({ length: count }, (_, index) => header.map((field) => [field, `${field} ${index}`]));
      const texts = expected.map((cells) => cells.map(([, text = ""]) => text));
      for (const { cell, at, text } of quotes) {
        const row = texts[cell % count] ?? [];
        const column = Math.floor(cell / count) % row.length;
        row[column] = `${row[column]?.slice(0, at)}${text}${row[column]?.slice(at)}`;
      }
      const text = texts.map((cells) => `${cells.join(",")}\n`).join("");
      const rows = await rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(`${header}\n${text}`)).catch(({ message }) => {
        expect(message).toMatch(/^file: line \d+ opens a quote that is never closed$/);
        return null;
      });
      for (const [index, cells] of expected.entries()) {
        const own = rows?.find((row) => isIn(row, index + 2));
        // Three quotes are a quote at the start of a quoted cell.
        const content = JSON.parse(JSON.stringify(own?.content ?? null).replaceAll('\\"', ""));
        if (typeof own?.content === "object") expect(content).toEqual(Object.fromEntries(cells));
        else expect(rows === null || own !== undefined).toBe(true);
      }
    }),
    { numRuns: 1000 },
  );
});

const START_OF_FILE = "raw_key,name,actor_id";

const BAD_FILES: readonly (readonly [problem: string, file: string | Buffer])[] = [
  ["header: unknown column 1", `${KEY},a,b\n`],
  ["header: has no column actor_id", "raw_key,name\n"],
  ["header: has a duplicate column", `${START_OF_FILE},name\n`],
  ["header: columns are separated by semicolons", `${START_OF_FILE.replaceAll(",", ";")}\n${KEY};a;b\n`],
  ["header: columns are separated by tabs", `${START_OF_FILE.replaceAll(",", "\t")}\n`],
  ["header: columns are separated by semicolons", `sep=;\r\n${START_OF_FILE}`],
  ["file: has CR line endings", `${START_OF_FILE}\r${KEY},a,b\r`],
  ["file: is UTF-16", Buffer.from(`\uFEFF${START_OF_FILE}\n`, "utf16le")],
  ["file: is UTF-16", Buffer.from(`\uFEFF${START_OF_FILE}\n`, "utf16le").swap16()],
  ["file: is UTF-16", Buffer.from(`${START_OF_FILE}\n`, "utf16le")],
  ["file: line 1 opens a quote that is never closed", `"${START_OF_FILE}\n${KEY},a,b\n`],
  ["file: line 3 opens a quote that is never closed", `${START_OF_FILE}\n${KEY},a,b\n${KEY},"a,b\n${KEY},c,d\n`],
  [
    "file: line 2 opens a quote that is not closed",
    `${START_OF_FILE}\n"${KEY},a,b\n`.padEnd(1.2 * MAX_ROW_BYTES, "x\n"),
  ],
];

test.each(table(BAD_FILES))("a file is refused, without quoting it: %s", async (problem, file) => {
  const read = rowsOf(csvFormat(PLAIN_ROWS), Buffer.from(file), { chunk: 262_144 });
  await expect(read).rejects.toMatchObject({ code: "INVALID_ARGUMENT", message: expect.stringContaining(problem) });
  await expect(read).rejects.not.toMatchObject({ message: expect.stringContaining(KEY) });
});

test("JSON Lines that cannot be read name the cause too", async () => {
  for (const file of [Buffer.from('{"name":"a"}\n', "utf16le"), Buffer.from("{}\r{}\r")]) {
    await expect(rowsOf(jsonLines, file)).rejects.toMatchObject({
      message: expect.stringMatching(/UTF-16|CR line endings/),
    });
  }
});

test("cells of metadata may have line breaks", async () => {
  const [row] = await rowsOf(
    csvFormat(PLAIN_ROWS),
    Buffer.from(`${START_OF_FILE},metadata.note\n${KEY},a,b,"first, and\nsecond"\n`),
  );
  expect(row?.content).toMatchObject({ "metadata.note": "first, and\nsecond" });
});
