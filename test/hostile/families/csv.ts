import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { withQuery } from "../../support/conformance.ts";
import { runKeyhold } from "../../support/keyhold.ts";
import { type Json, paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { Family } from "../case.ts";

const CA_FILE = resolve(import.meta.dirname, "../../support/tls/localhost.cert.pem");

/** Cells that a person or a spreadsheet leaves behind. */
const CELLS = [
  "",
  "name",
  '"',
  '""',
  '"name',
  'name"',
  'na"me',
  '"name"',
  '"na""me"',
  "a,b",
  '"a,b"',
  "a\nb",
  '"a\nb"',
  "a\r\nb",
  "a\rb",
  "a\tb",
  "a;b",
  "=1+1",
  "#REF!",
  "7.39E+07",
  "\uFEFFname",
  "na\0me",
  "\u202Ename",
  " name ",
  "é".repeat(200),
];

/** Exit statuses of an import: success, a file that cannot be read, and rows that failed (docs/command.md). */
const STATUSES = [0, 2, 8];

/** Changes of a whole file. */
const CHANGES: Readonly<Record<string, (text: string) => Buffer>> = {
  "carriage returns": (text) => Buffer.from(text.replaceAll("\n", "\r")),
  semicolons: (text) => Buffer.from(text.replaceAll(",", ";")),
  tabs: (text) => Buffer.from(text.replaceAll(",", "\t")),
  "UTF-16": (text) => Buffer.from(`\uFEFF${text}`, "utf16le"),
  "an opened quote at the end": (text) => Buffer.from(`${text}"`),
  "empty rows": (text) => Buffer.from(text.replaceAll("\n", "\n\n,,,\n")),
};

const UNCHANGED: [string, (text: string) => Buffer] = ["unchanged", (text) => Buffer.from(text)];

interface CsvRow {
  readonly before: string;
  readonly after: string;
}

/**
 * Imports of CSV files with unusual cells beside the raw keys. Each raw key is imported, or the command fails; none becomes part of another
 * field, of the output or of the file of failures.
 */
export const csv: Family = {
  name: "csv",
  parallel: 2,
  weight: 1,
  generate(random) {
    const rows = Array.from({ length: 1 + random.below(30) }, () => rowOf(random));
    const [kind, change] = random.pick([UNCHANGED, random.pick(Object.entries(CHANGES))]);
    const textOf = (raw: readonly string[], actor: string) =>
      [
        "name,raw_key,actor_id,metadata.note",
        ...rows.map((row, i) => `${row.before},${raw[i]},${actor},${row.after}`),
        "",
      ].join("\n");
    return {
      kind,
      description: () =>
        `${kind}\n${textOf(
          rows.map((_, index) => `raw-key-${index}`),
          "actor",
        )}`,
      async run(target) {
        // Unique, since a case may run again.
        const actor = `csv-${randomBytes(6).toString("hex")}`;
        const raw = rows.map(() => `raw-${randomBytes(12).toString("hex")}`);
        const dir = await mkdtemp(join(tmpdir(), "keyhold-csv-"));
        try {
          const file = join(dir, "keys.csv");
          await writeFile(file, change(textOf(raw, actor)));
          const credentials: Record<string, string> = target.token === undefined ? {} : { KEYHOLD_TOKEN: target.token };
          const environment = { KEYHOLD_URL: target.url, NODE_EXTRA_CA_CERTS: CA_FILE, ...credentials };
          const { code, stdout, stderr } = await runKeyhold(["keys", "import", file], environment);
          const failures = await readFile(`${file}.failures.jsonl`, "utf8").catch(() => "");
          const operator = target.operator;
          const stored = (
            await operator("GET", withQuery(paths.imported, { page_size: "1000", filter: `actor_id="${actor}"` }))
          ).body;
          const requests = raw.map((credential) => ({ credential }));
          const verdicts = (await operator("POST", `${paths.keys}:batchVerify`, { requests })).body.results;
          const lost = verdicts.filter(({ is_valid }: Json) => !is_valid).length;
          const leaks = (where: string, text: string) =>
            raw
              .filter((key) => text.includes(key))
              .map(
                (key) =>
                  `a raw key is in ${where}: … ${text.slice(Math.max(0, text.indexOf(key) - 300)).slice(0, 600)}`,
              )
              .slice(0, 1);
          return [
            ...(lost > 0 && code === 0
              ? [`exit status 0, but ${lost} of ${raw.length} keys are not valid:\n${stdout}${stderr}`]
              : []),
            ...(lost === 0 && stored.imported_api_keys.length > raw.length
              ? ["more keys than rows were imported"]
              : []),
            ...(code !== null && STATUSES.includes(code) ? [] : [`exit status ${code}: ${stderr}`]),
            ...leaks("a record", JSON.stringify(stored)),
            ...leaks("the output", stdout + stderr),
            ...leaks("the file of failures", failures),
          ];
        } finally {
          await rm(dir, { recursive: true, force: true });
        }
      },
    };
  },
};

/** Most rows are plain. */
function rowOf(random: Seeded): CsvRow {
  const cell = () => (random.below(4) === 0 ? random.pick(CELLS) : "name");
  return { before: cell(), after: cell() };
}
