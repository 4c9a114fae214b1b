import type { JsonObject } from "../../lib/json.ts";
import { cell, tableText, write } from "../output.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { restJson } from "../rest-json.ts";

export interface ListOptions extends RemoteOptions {
  readonly imported?: boolean;
  readonly filter?: string;
  /** Maximum number of keys; all by default. */
  readonly limit?: number;
  readonly pageSize: number;
}

/** Lists keys page by page, in the memory of one page. */
export async function list(options: ListOptions): Promise<void> {
  const pages = pagesOf(await openRemote(options), options);
  await (options.json === true ? writeArray(pages) : writeTable(pages));
}

/** Yields the keys of each page that has any. */
async function* pagesOf(
  { issuedApiKeys, importedApiKeys }: Remote,
  options: ListOptions,
): AsyncGenerator<JsonObject[]> {
  const { imported = false, filter = "", limit = Number.POSITIVE_INFINITY } = options;
  let left = limit;
  let pageToken = "";
  do {
    const request = { filter, pageSize: Math.min(left, options.pageSize), pageToken };
    const page = await (imported
      ? importedApiKeys.listImportedApiKeys(request)
      : issuedApiKeys.listIssuedApiKeys(request));
    const keys = "importedApiKeys" in page ? page.importedApiKeys : page.issuedApiKeys;
    if (keys.length > 0) yield keys.map(restJson);
    left -= keys.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && left > 0);
}

/** Writes a JSON array with one key per line. */
async function writeArray(pages: AsyncIterable<readonly JsonObject[]>): Promise<void> {
  let before = "[\n";
  for await (const keys of pages) {
    await write(before + keys.map((key) => JSON.stringify(key)).join(",\n"));
    before = ",\n";
  }
  await write(before === ",\n" ? "\n]\n" : "[]\n");
}

const HEADER = ["KEY ID", "NAME", "ACTOR ID", "STATUS", "SCOPES", "CREATED", "EXPIRES"];

/** Writes a table with the header above the first page only. */
async function writeTable(pages: AsyncIterable<readonly JsonObject[]>): Promise<void> {
  let header = [HEADER];
  for await (const keys of pages) {
    await write(tableText([...header, ...keys.map(columnsOf)]));
    header = [];
  }
  if (header.length > 0) console.error("no keys");
}

function columnsOf(key: JsonObject): string[] {
  const { key_id, name, actor_id, status, scopes, create_time, expire_time } = key;
  return [key_id, name, actor_id, status, scopes, create_time, expire_time].map(cell);
}
