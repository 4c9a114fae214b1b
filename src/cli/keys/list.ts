import { ImportedApiKeySchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeySchema } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import type { JsonObject } from "../../lib/json.ts";
import { cell, restJson, tableText, write } from "../output.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";

export interface ListOptions extends RemoteOptions {
  readonly imported?: boolean;
  readonly filter?: string;
  /** Maximum number of keys; all by default. */
  readonly limit?: number;
  readonly pageSize: number;
}

interface Page {
  readonly keys: readonly JsonObject[];
  readonly nextPageToken: string;
}

/** Lists keys page by page, in the memory of one page. */
export async function list(options: ListOptions): Promise<void> {
  const pages = pagesOf(pageReader(await openRemote(options), options), options);
  await (options.json === true ? writeArray(pages) : writeTable(pages));
}

type ReadPage = (pageSize: number, pageToken: string) => Promise<Page>;

function pageReader({ issuedApiKeys, importedApiKeys }: Remote, options: ListOptions): ReadPage {
  const { filter = "" } = options;
  return async (pageSize, pageToken) => {
    if (options.imported === true) {
      const page = await importedApiKeys.listImportedApiKeys({ filter, pageSize, pageToken });
      return { ...page, keys: page.importedApiKeys.map((key) => restJson(ImportedApiKeySchema, key)) };
    }
    const page = await issuedApiKeys.listIssuedApiKeys({ filter, pageSize, pageToken });
    return { ...page, keys: page.issuedApiKeys.map((key) => restJson(IssuedApiKeySchema, key)) };
  };
}

async function* pagesOf(read: ReadPage, { limit = Number.POSITIVE_INFINITY, pageSize }: ListOptions) {
  let left = limit;
  let token = "";
  do {
    const { keys, nextPageToken } = await read(Math.min(left, pageSize), token);
    yield keys;
    left -= keys.length;
    token = nextPageToken;
  } while (token !== "" && left > 0);
}

/** Writes a JSON array with one key per line. */
async function writeArray(pages: AsyncIterable<readonly JsonObject[]>): Promise<void> {
  let before = "[\n";
  for await (const keys of pages) {
    if (keys.length === 0) continue;
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
    if (keys.length === 0) continue;
    await write(tableText([...header, ...keys.map(columnsOf)]));
    header = [];
  }
  if (header.length > 0) console.error("no keys");
}

function columnsOf(key: JsonObject): string[] {
  const { key_id, name, actor_id, status, scopes, create_time, expire_time } = key;
  return [key_id, name, actor_id, status, scopes, create_time, expire_time].map(cell);
}
