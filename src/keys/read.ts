import { attempt, checkAll, invalidArgument, KeyholdError } from "../domain/errors.ts";
import { type ApiKey, type KeyKind, parseKeyId } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { countFitting, responseSize } from "../domain/response-size.ts";
import { isVisible } from "../domain/visibility.ts";
import { parseKeyFilter } from "./filter.ts";
import { parseOrder } from "./list-order.ts";
import { openPageToken, sealPageToken } from "./page-token.ts";
import type { KeysContext } from "./ports.ts";
import { keyNotFound } from "./rejection.ts";

/** Returns a key of this kind, or of either kind if it is null. */
export async function getKey(
  { store }: KeysContext,
  { restrictions }: Principal,
  kind: KeyKind | null,
  keyId: string,
): Promise<ApiKey> {
  const name = { keyId: parseKeyId(keyId, "key_id"), kind };
  const stored = await store.get(name);
  if (stored === null || !isVisible(stored.key, restrictions)) throw keyNotFound(name);
  return stored.key;
}

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1000;

export interface PageRequest {
  /** 0 means the default of 50; above 1000 means 1000. */
  readonly pageSize: number;
  /** Empty for the first page. */
  readonly pageToken: string;
  readonly filter: string;
  readonly orderBy: string;
}

type PagesContext = Pick<KeysContext, "clock"> & { readonly rings: Pick<KeysContext["rings"], "pageToken"> };

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parsePageRequest({ rings, clock }: PagesContext, kind: KeyKind | null, request: PageRequest) {
  const scope = { list: kind ?? "all", filter: request.filter, orderBy: request.orderBy };
  const opened = attempt(() =>
    request.pageToken === "" ? null : openPageToken(request.pageToken, scope, rings.pageToken),
  );
  // Stays null if the filter has no now(). Later pages have that of the first one.
  let now: number | null = null;
  const readNow = () => {
    now ??= (opened instanceof KeyholdError ? null : opened?.now) ?? clock.now();
    return now;
  };
  const [filter, order, start, size] = checkAll(
    () => parseKeyFilter(request.filter, kind, readNow),
    () => parseOrder(request.orderBy),
    () => {
      if (opened instanceof KeyholdError) throw opened;
      return opened;
    },
    () => pageSizeOf(request.pageSize),
  );
  return { kind, scope, filter, order, after: start?.after ?? null, now, size };
}

/** Returns one page of the keys that the caller may see, and the token of the next one, empty if this is the last. */
export async function listKeys(
  { store, clock, rings }: PagesContext & { readonly store: Pick<KeysContext["store"], "list"> },
  { restrictions: { actorIds } }: Pick<Principal, "restrictions">,
  { scope, now, size, ...query }: ReturnType<typeof parsePageRequest>,
) {
  const found = await store.list({ actorIds, ...query, limit: size + 1 }, new Date(clock.now()));
  // AIP-158 allows a page to have fewer keys than requested.
  const keys = found.slice(0, Math.min(size, countFitting(found, responseSize)));
  const last = keys.at(-1);
  if (found.length === keys.length || last === undefined) return { keys, nextPageToken: "" };
  const after = { keyId: last.keyId, value: last.orderValue };
  return { keys, nextPageToken: sealPageToken(scope, { after, now }, rings.pageToken) };
}

/** Returns the effective page size. */
export function pageSizeOf(wanted: number): number {
  if (wanted < 0) throw invalidArgument("page_size", "must not be negative", "OUT_OF_RANGE");
  return Math.min(wanted === 0 ? DEFAULT_PAGE_SIZE : wanted, MAX_PAGE_SIZE);
}
