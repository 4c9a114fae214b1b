import type { Message } from "@bufbuild/protobuf";
import { parseDuration } from "../../domain/duration.ts";
import { allOf, equalTo } from "../filter.ts";
import { type PageRequest, pagesOf } from "../pages.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { writeList } from "../rest-json.ts";

interface ListOptions extends RemoteOptions {
  /** By default the field of a condition, since a list is fast in the order of what it selects by; otherwise newest first. */
  readonly orderBy?: string;
  readonly kind: "issued" | "imported" | "all";
  /** Maximum number of keys; all by default. */
  readonly limit?: number;
  readonly pageSize: number;
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
  const pages = pagesOf(reader(await openRemote(options), options), options);
  // The list of both kinds has the kind of each key.
  await writeList(pages, options.kind === "all" ? { ...COLUMNS, kind: "KIND" } : COLUMNS, "no keys", options);
}

/**
 * Returns the filter of the options, all of which a key must satisfy. Keys that were never used are unused; keys that are newer than the
 * duration are not, since they may not have been used yet. Throws `INVALID_ARGUMENT` naming the option with an invalid duration.
 */
function filterOf({ filter = "", actor, status, expiringWithin, unusedFor, notAdopted }: ListOptions): string {
  const conditions = equalTo("actor_id", actor);
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
  return allOf(filter, conditions);
}

function orderOf({ expiringWithin, unusedFor }: ListOptions): string {
  if (expiringWithin !== undefined) return "expire_time";
  return unusedFor === undefined ? "" : "last_used_time";
}

function reader({ apiKeys, issuedApiKeys, importedApiKeys }: Remote, options: ListOptions) {
  const conditions = { filter: filterOf(options), orderBy: options.orderBy ?? orderOf(options) };
  return async (page: PageRequest): Promise<readonly [keys: readonly Message[], nextPageToken: string]> => {
    const request = { ...conditions, ...page };
    if (options.kind === "issued") {
      const { issuedApiKeys: keys, nextPageToken } = await issuedApiKeys.listIssuedApiKeys(request);
      return [keys, nextPageToken];
    }
    if (options.kind === "imported") {
      const { importedApiKeys: keys, nextPageToken } = await importedApiKeys.listImportedApiKeys(request);
      return [keys, nextPageToken];
    }
    const { apiKeys: keys, nextPageToken } = await apiKeys.listApiKeys(request);
    return [keys, nextPageToken];
  };
}

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
