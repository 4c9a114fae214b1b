import type { Message } from "@bufbuild/protobuf";
import { parseDuration } from "../../domain/duration.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { writeList } from "../rest-json.ts";

interface ListOptions extends RemoteOptions, Selection {
  /** By default the field of a condition, since a list is fast in the order of what it selects by; otherwise newest first. */
  readonly orderBy?: string;
  readonly kind: "issued" | "imported" | "all";
  /** Maximum number of keys; all by default. */
  readonly limit?: number;
  readonly pageSize: number;
}

/** What the keys of a list must satisfy, all of it. */
interface Selection {
  readonly filter?: string;
  readonly actor?: string;
  /** In lower case. */
  readonly status?: string;
  /** Durations. */
  readonly expiringWithin?: string;
  readonly unusedFor?: string;
  /** Only keys that were imported by a hash and not adopted yet. */
  readonly notAdopted?: true;
}

/** Lists keys page by page, in the memory of one page. */
export async function list(options: ListOptions): Promise<void> {
  const pages = pagesOf(await openRemote(options), options);
  // The list of both kinds has the kind of each key.
  await writeList(pages, options.kind === "all" ? { ...COLUMNS, kind: "KIND" } : COLUMNS, "no keys", options);
}

/**
 * Returns the filter of a selection. Keys that were never used are unused; keys that are newer than the duration are not, since they may not
 * have been used yet. Throws `INVALID_ARGUMENT` naming the option with an invalid duration.
 */
function filterOf(selection: Selection): string {
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
async function* pagesOf(remote: Remote, options: ListOptions): AsyncGenerator<readonly Message[]> {
  const { kind, pageSize, limit = Number.POSITIVE_INFINITY } = options;
  const request = { filter: filterOf(options), orderBy: options.orderBy ?? orderOf(options) };
  const readPage = pageReader(remote, kind);
  let [left, pageToken] = [limit, ""];
  do {
    const [keys, next] = await readPage({ ...request, pageToken, pageSize: Math.min(left, pageSize) });
    if (keys.length > 0) yield keys;
    left -= keys.length;
    pageToken = next;
  } while (pageToken !== "" && left > 0);
}

interface PageRequest {
  readonly filter: string;
  readonly orderBy: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Returns the function that reads the keys of a page of this kind, and the token of the next one. */
function pageReader({ apiKeys, issuedApiKeys, importedApiKeys }: Remote, kind: ListOptions["kind"]) {
  return async (request: PageRequest): Promise<readonly [keys: readonly Message[], nextPageToken: string]> => {
    if (kind === "issued") {
      const page = await issuedApiKeys.listIssuedApiKeys(request);
      return [page.issuedApiKeys, page.nextPageToken];
    }
    if (kind === "imported") {
      const page = await importedApiKeys.listImportedApiKeys(request);
      return [page.importedApiKeys, page.nextPageToken];
    }
    const page = await apiKeys.listApiKeys(request);
    return [page.apiKeys, page.nextPageToken];
  };
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
