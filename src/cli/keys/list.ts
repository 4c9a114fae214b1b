import type { Message } from "@bufbuild/protobuf";
import { parseDuration } from "../../domain/duration.ts";
import { fieldCell, headerOf, jsonText, note, tableText, write } from "../output.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { fieldOf, restJson } from "../rest-json.ts";

export interface ListOptions extends RemoteOptions, Selection {
  /** By default the field of a condition, since a list is fast in the order of what it selects by; otherwise newest first. */
  readonly orderBy?: string;
  readonly kind: "issued" | "imported" | "all";
  /** Maximum number of keys; all by default. */
  readonly limit?: number;
  readonly pageSize: number;
}

/** What the keys of a list must satisfy, all of it. */
export interface Selection {
  readonly filter?: string;
  readonly actor?: string;
  /** In lower case. */
  readonly status?: string;
  /** Durations. */
  readonly expiringWithin?: string;
  readonly unusedFor?: string;
  /** Only keys of which no more than a hash is known. */
  readonly notAdopted?: true;
}

/** Lists keys page by page, in the memory of one page. */
export async function list(options: ListOptions): Promise<void> {
  const filter = filterOf(options);
  const pages = pagesOf(await openRemote(options), options, filter, options.orderBy ?? orderOf(options));
  if (options.json === true) await writeArray(pages);
  else if (options.output !== undefined) await writeValues(pages, options.output);
  else await writeTable(pages, options.kind);
}

/**
 * Returns the filter of a selection. Keys that were never used are unused; keys that are newer than the duration are not, since they may not
 * have been used yet. Throws `INVALID_ARGUMENT` naming the option with an invalid duration.
 */
export function filterOf(selection: Selection): string {
  const { filter = "", actor, status, expiringWithin, unusedFor, notAdopted } = selection;
  const conditions: string[] = [];
  if (actor !== undefined) conditions.push(`actor_id=${quoted(actor)}`);
  if (status !== undefined) conditions.push(`status=KEY_STATUS_${status.toUpperCase()}`);
  if (expiringWithin !== undefined) {
    parseDuration(expiringWithin, "--expiring-within");
    conditions.push(`expire_time > now() AND expire_time <= now() + "${expiringWithin}"`);
  }
  if (unusedFor !== undefined) {
    parseDuration(unusedFor, "--unused-for");
    conditions.push(`NOT last_used_time >= now() - "${unusedFor}" AND create_time < now() - "${unusedFor}"`);
  }
  if (notAdopted) conditions.push("adopted = false");
  // Without parentheses if it is alone, so that positions in errors are those of the option.
  if (conditions.length === 0 || filter.trim() === "") return filter + conditions.join(" AND ");
  return [`(${filter})`, ...conditions].join(" AND ");
}

function orderOf({ expiringWithin, unusedFor }: Selection): string {
  if (expiringWithin !== undefined) return "expire_time";
  return unusedFor === undefined ? "" : "last_used_time";
}

/** Returns a string of the filter language. */
function quoted(text: string): string {
  return `"${text.replace(/["\\*]/g, "\\$&")}"`;
}

/** Yields the keys of each page that has any. */
async function* pagesOf(
  remote: Remote,
  options: ListOptions,
  filter: string,
  orderBy: string,
): AsyncGenerator<readonly Message[]> {
  const { kind, limit = Number.POSITIVE_INFINITY } = options;
  const fetchPage = pageReader(remote, kind);
  let left = limit;
  let pageToken = "";
  do {
    const { keys, nextPageToken } = await fetchPage({
      filter,
      orderBy,
      pageToken,
      pageSize: Math.min(left, options.pageSize),
    });
    if (keys.length > 0) yield keys;
    left -= keys.length;
    pageToken = nextPageToken;
  } while (pageToken !== "" && left > 0);
}

interface PageRequest {
  readonly filter: string;
  readonly orderBy: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Returns the function that reads a page of this kind. */
function pageReader({ apiKeys, issuedApiKeys, importedApiKeys }: Remote, kind: ListOptions["kind"]) {
  return async (request: PageRequest) => {
    if (kind === "issued") {
      const { issuedApiKeys: keys, nextPageToken } = await issuedApiKeys.listIssuedApiKeys(request);
      return { keys, nextPageToken };
    }
    if (kind === "imported") {
      const { importedApiKeys: keys, nextPageToken } = await importedApiKeys.listImportedApiKeys(request);
      return { keys, nextPageToken };
    }
    const { apiKeys: keys, nextPageToken } = await apiKeys.listApiKeys(request);
    return { keys, nextPageToken };
  };
}

/** Writes a JSON array with one key per line. */
async function writeArray(pages: AsyncIterable<readonly Message[]>): Promise<void> {
  let before = "[\n";
  for await (const keys of pages) {
    await write(before + keys.map((key) => jsonText(restJson(key))).join(",\n"));
    before = ",\n";
  }
  await write(before === ",\n" ? "\n]\n" : "[]\n");
}

/** Writes the value of a field of each key, one per line. */
async function writeValues(pages: AsyncIterable<readonly Message[]>, field: string): Promise<void> {
  for await (const keys of pages) await write(keys.map((key) => `${fieldOf(key, field)}\n`));
}

/** The columns by field. */
const COLUMNS = {
  name: "NAME",
  key_id: "KEY ID",
  actor_id: "ACTOR ID",
  status: "STATUS",
  scopes: "SCOPES",
  create_time: "CREATED",
  expire_time: "EXPIRES",
  last_used_time: "LAST USED",
};

/** Writes a table with the header above the first page only; the list of both kinds has the kind of each key. */
async function writeTable(pages: AsyncIterable<readonly Message[]>, kind: ListOptions["kind"]): Promise<void> {
  const columns = Object.entries(kind === "all" ? { ...COLUMNS, kind: "KIND" } : COLUMNS);
  let header = [headerOf(columns.map(([, title]) => title))];
  for await (const keys of pages) {
    const rows = keys.map(restJson).map((key) => columns.map(([field]) => fieldCell(field, key[field])));
    await write(tableText([...header, ...rows]));
    header = [];
  }
  if (header.length > 0) note("no keys");
}
