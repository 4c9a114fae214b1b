import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { csvFormat } from "../../../src/cli/import/csv.ts";
import { checkColumnMap, type HashDefaults, type RowOptions } from "../../../src/cli/import/fields.ts";
import { jsonLines, readRows } from "../../../src/cli/import/records.ts";
import { requestOf } from "../../../src/cli/import/request.ts";
import { table } from "../../support/conformance.ts";

const HASH = createHash("sha256").update("a raw key").digest("hex");
const BCRYPT = "$2b$10$u8wAH.oaJ8fyife9fNcpmOEmtuE9nu6TpW/LLwdZzTub/1HraV5OW";
const SHA256: HashDefaults = { algorithm: "sha256", encoding: "hex" };

async function requestsOf(text: string, options: Partial<RowOptions>, format: "csv" | "jsonl") {
  const rows: RowOptions = { columns: null, hash: {}, ...options };
  async function* chunks() {
    yield Buffer.from(text);
  }
  const parsed = readRows(chunks(), format === "csv" ? csvFormat(rows) : jsonLines);
  return (await Array.fromAsync(parsed)).flat().map((row) => requestOf(row, rows));
}

const csv = (text: string, options: Partial<RowOptions> = {}) => requestsOf(text, options, "csv");
const jsonl = (text: string, options: Partial<RowOptions> = {}) => requestsOf(text, options, "jsonl");

test("reads hashes from the short columns, with what the options state for all", async () => {
  const hash = { ...SHA256, prefix: "pepper:", hmac_key_id: "unused" };
  const [request] = await csv(`hash,name,actor_id\n${HASH},a,b\n`, { hash });
  expect(request).toMatchObject({
    rawKey: "",
    rawKeyHash: { algorithm: 1, encoding: 1, value: HASH, prefix: "pepper:" },
    name: "a",
    actorId: "b",
  });
  expect(request).not.toHaveProperty("rawKeyHash.hmacKeyId");
  expect(request).not.toHaveProperty("rawKeyHash.suffix");
});

test("reads the fields of a hash from JSON as in the API, and from columns of the same names", async () => {
  const key = {
    algorithm: "HASH_ALGORITHM_HMAC_SHA256",
    value: HASH,
    encoding: "TEXT_ENCODING_HEX",
    hmac_key_id: "old",
  };
  const row = { raw_key_hash: key, name: "a", actor_id: "b", adopt_before_time: "2030-01-02T03:04:05Z" };
  const header = "raw_key_hash.algorithm,raw_key_hash.value,raw_key_hash.encoding,raw_key_hash.hmac_key_id";
  const cells = `hmac-sha256,${HASH},hex,old,a,b,2030-01-02T03:04:05Z`;
  const [fromJson] = await jsonl(JSON.stringify(row));
  const [fromCsv] = await csv(`${header},name,actor_id,adopt_before_time\n${cells}\n`);
  expect(fromJson).toMatchObject({ rawKeyHash: { algorithm: 5, encoding: 1, value: HASH, hmacKeyId: "old" } });
  expect(fromJson).toHaveProperty("adoptBeforeTime.seconds", BigInt(Date.parse("2030-01-02T03:04:05Z") / 1000));
  expect(fromCsv).toEqual(fromJson);
});

test("a row may have a raw key, a hash or a hash with its salt", async () => {
  const rows = ["a raw key,,,,a,b", `,${HASH},,,a,b`, `,,${BCRYPT},prefix,a,b`];
  const text = `raw_key,hash,phc,lookup_prefix,name,actor_id\n${rows.join("\n")}\n`;
  const [raw, fast, slow] = await csv(text, { hash: { ...SHA256, suffix: "!" } });
  expect(raw).toMatchObject({ rawKey: "a raw key" });
  expect(raw).not.toHaveProperty("rawKeyHash");
  expect(fast).toMatchObject({ rawKeyHash: { value: HASH, suffix: "!" } });
  expect(slow).toMatchObject({ rawKeyHash: { phc: BCRYPT, suffix: "!" }, lookupPrefix: "prefix" });
  expect(slow).not.toHaveProperty("rawKeyHash.algorithm");
});

test("what a row states takes precedence over the options", async () => {
  const [request] = await csv(
    `hash,raw_key_hash.algorithm,raw_key_hash.encoding,name,actor_id\n${HASH},SHA512_256,,a,b\n`,
    { hash: { ...SHA256 } },
  );
  expect(request).toMatchObject({ rawKeyHash: { algorithm: 4, encoding: 1 } });
});

test("reads columns of other names, and no others", async () => {
  const columns = { hash: "key", name: "label", actor_id: "label", "metadata.id": "id" };
  const options = { columns, hash: SHA256 };
  const [fromCsv] = await csv(`id,key,label,name,metadata\n7,${HASH},a,other,null\n`, options);
  const [fromJson] = await jsonl(JSON.stringify({ id: "7", key: HASH, label: "a", name: "other", x: [] }), options);
  expect(fromCsv).toMatchObject({ name: "a", actorId: "a", metadata: { id: "7" }, rawKeyHash: { value: HASH } });
  expect(fromJson).toEqual(fromCsv);
});

const row = (fields: object) => JSON.stringify({ name: "a", actor_id: "b", ...fields });

const BAD_ROWS: readonly (readonly [string, string, HashDefaults])[] = [
  [
    "raw_key_hash.value: is not hexadecimal: did you mean TEXT_ENCODING_BASE64",
    row({ hash: "G4d27ISkfrHKgHd9RyCxVzWRs7Siu0t" }),
    SHA256,
  ],
  [
    "raw_key_hash.value: has 32 bytes; HASH_ALGORITHM_SHA512 needs 64",
    row({ hash: HASH }),
    { ...SHA256, algorithm: "sha512" },
  ],
  ["raw_key_hash.algorithm: is required with value", row({ hash: HASH }), {}],
  ["raw_key_hash.encoding: is required with value", row({ hash: HASH }), { algorithm: "sha256" }],
  [
    "raw_key_hash.hmac_key_id: is required with HASH_ALGORITHM_HMAC_SHA256",
    row({ hash: HASH }),
    { ...SHA256, algorithm: "hmac-sha256" },
  ],
  ["raw_key_hash.value: begins with $", row({ hash: BCRYPT }), SHA256],
  ["raw_key_hash.phc: has no $", row({ phc: HASH, lookup_prefix: "prefix" }), {}],
  ["lookup_prefix: is required with raw_key_hash.phc", row({ phc: BCRYPT }), {}],
  ["lookup_prefix: has 5 bytes", row({ phc: BCRYPT, lookup_prefix: "short" }), {}],
  ["lookup_prefix: requires raw_key_hash.phc", row({ hash: HASH, lookup_prefix: "prefix" }), SHA256],
  ["lookup_prefix: requires raw_key_hash", row({ raw_key: "a raw key", lookup_prefix: "prefix" }), {}],
  ["raw_key: must not be set together with raw_key_hash", row({ raw_key: "a raw key", hash: HASH }), SHA256],
  ["hash: is set twice", row({ hash: HASH, raw_key_hash: { value: HASH } }), SHA256],
  ["raw_key_hash.value: must be a string", row({ hash: 7 }), SHA256],
  ["raw_key_hash: must be an object", row({ raw_key_hash: [HASH] }), SHA256],
  ["raw_key_hash.salt: is not a known field", row({ raw_key_hash: { value: HASH, salt: "x" } }), SHA256],
  ["raw_key_hash.algorithm: must be one of", row({ raw_key_hash: { value: HASH, algorithm: HASH } }), SHA256],
  ["raw_key: is required without raw_key_hash", row({}), SHA256],
  ["adopt_before_time: must be an RFC 3339 time", row({ hash: HASH, adopt_before_time: HASH }), SHA256],
];

test.each(table(BAD_ROWS))("invalid row: %s", async (problem, line, hash) => {
  const [said] = await jsonl(line, { hash });
  expect(said).toEqual(expect.stringContaining(problem));
  expect(said).not.toContain(HASH);
  expect(said).not.toContain(BCRYPT);
});

const BAD_HEADERS: readonly (readonly [string, string, Partial<RowOptions>])[] = [
  ["header: has no column raw_key, hash or phc", "name,actor_id", {}],
  ["header: has no column actor_id", "hash,name", { hash: SHA256 }],
  ["--hash-algorithm: is required", "hash,name,actor_id", {}],
  ["--hash-encoding: is required", "hash,name,actor_id", { hash: { algorithm: "sha256" } }],
  ["header: unknown column 3; allowed: raw_key, hash", "hash,name,owner", { hash: SHA256 }],
  [
    'header: has no column "owner" listed in --map',
    "key,name",
    { columns: { hash: "key", name: "name", actor_id: "owner" } },
  ],
];

test.each(table(BAD_HEADERS))("invalid header: %s", async (problem, header, options) => {
  await expect(csv(`${header}\n`, options)).rejects.toThrow(problem);
});

const BAD_MAPS: readonly (readonly [string, Record<string, string>])[] = [
  ['--map: unknown field "owner"; allowed: raw_key', { hash: "key", name: "name", actor_id: "owner", owner: "owner" }],
  ["--map: does not include raw_key, hash or phc", { name: "name", actor_id: "owner" }],
  ["--map: does not include actor_id", { hash: "key", name: "name" }],
  ["--hash-algorithm: is required", { hash: "key", name: "name", actor_id: "owner" }],
];

test.each(table(BAD_MAPS))("invalid map: %s", (problem, columns) => {
  expect(() => checkColumnMap({ columns, hash: {} })).toThrow(problem);
});
