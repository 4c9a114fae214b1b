import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { UsageCount } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { parseKeyId } from "../../domain/key.ts";
import type { JsonObject } from "../../lib/json.ts";
import { type Dimension, isOfUnits } from "../../usage/query.ts";
import { timeOf } from "../audit/selection.ts";
import { note, tableText, write } from "../output.ts";
import { type PageRequest, pagesOf } from "../pages.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { restJson, writeList } from "../rest-json.ts";

interface UsageOptions extends RemoteOptions {
  readonly actor?: string;
  readonly outcome?: string;
  readonly units?: string;
  readonly since?: string;
  readonly until?: string;
  readonly by?: readonly Dimension[];
  readonly step?: string;
  readonly limit: number;
  readonly csv?: true;
}

const PAGE_SIZE = 1_000;

/** Prints the usage of a key, or of all keys, as a table with bars, JSON or CSV. */
export async function usage(key: string | undefined, options: UsageOptions): Promise<void> {
  const { actor: actorId, outcome, units, since = "24h", until, csv, limit } = options;
  const { by = [key === undefined ? "key" : units === undefined ? "outcome" : "limit"], step } = options;
  const query = {
    ...{ actorId, outcome, limit: units, step, groupBy: [...by] },
    keyId: key && parseKeyId(key, "key_id"),
    startTime: timestampOf("--since", since),
    ...(until !== undefined && { endTime: timestampOf("--until", until) }),
  };
  const { usage: client } = await openRemote(options);
  const read = async (page: PageRequest) => {
    const { usageCounts, nextPageToken } = await client.queryUsage({ ...query, ...page });
    return [usageCounts, nextPageToken] as const;
  };
  const paging = csv ? { pageSize: PAGE_SIZE } : { pageSize: PAGE_SIZE, limit };
  const pages = pagesOf(read, paging);
  const fields = fieldsOf(by, step, isOfUnits({ limit: units, groupBy: by }) ? "units" : "count");
  if (csv) return writeCsv(pages, fields);
  if (options.json) return writeList(pages, {}, "", options);
  return writeTable(pages, fields);
}

function timestampOf(option: string, text: string): Timestamp {
  return timestampFromDate(new Date(timeOf(option, text)));
}

type Amount = "count" | "units";
type Field = "start_time" | "key_id" | "actor_id" | "outcome" | "limit" | Amount;

/** Returns the fields that the counts have. */
function fieldsOf(by: readonly Dimension[], step: string | undefined, amount: Amount): readonly Field[] {
  return [
    ...(step === undefined ? [] : (["start_time"] as const)),
    ...(by.includes("key") ? (["key_id"] as const) : []),
    ...(by.includes("key") || by.includes("actor") ? (["actor_id"] as const) : []),
    ...(by.includes("outcome") ? (["outcome"] as const) : []),
    ...(by.includes("limit") ? (["limit"] as const) : []),
    amount,
  ];
}

/** Writes pages as they are read (RFC 4180). */
async function writeCsv(pages: AsyncIterable<readonly UsageCount[]>, fields: readonly Field[]): Promise<void> {
  await write(`${fields.join(",")}\n`);
  for await (const counts of pages)
    await write(counts.map((count) => `${cellsOf(restJson(count), fields).map(csvCell).join(",")}\n`));
}

/** A cell that a spreadsheet could take for a formula begins with an apostrophe. */
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const TITLES: Readonly<Record<Field, string>> = {
  start_time: "TIME",
  key_id: "KEY",
  actor_id: "ACTOR",
  outcome: "OUTCOME",
  limit: "LIMIT",
  count: "COUNT",
  units: "UNITS",
};

const BAR_WIDTH = 30;

async function writeTable(pages: AsyncIterable<readonly UsageCount[]>, fields: readonly Field[]): Promise<void> {
  const counts = (await Array.fromAsync(pages)).flat();
  if (counts.length === 0) return note("no usage");
  // One of them is 0.
  const amounts = counts.map(({ count, units }) => Number(count + units));
  const most = Math.max(...amounts);
  const rows = counts.map((count, row) => [...cellsOf(restJson(count), fields), bar((amounts[row] ?? 0) / most)]);
  await write(
    tableText(
      rows,
      fields.map((field) => TITLES[field]),
    ),
  );
}

function cellsOf(record: JsonObject, fields: readonly Field[]): string[] {
  return fields.map((field) => String(record[field] ?? ""));
}

/** Returns a bar of blocks, in eighths of a character. */
function bar(part: number): string {
  const eighths = Math.max(1, Math.round(part * BAR_WIDTH * 8));
  const rest = eighths % 8;
  return "█".repeat(Math.floor(eighths / 8)) + (rest === 0 ? "" : String.fromCodePoint(0x2590 - rest));
}
