import { attempt, checkAll, invalidArgument, KeyholdError } from "../domain/errors.ts";
import { countFitting } from "../domain/response-size.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Clock } from "../lib/clock.ts";
import { openPageToken, type PageList, sealPageToken } from "./page-token.ts";

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

export interface PagingContext {
  readonly clock: Clock;
  readonly rings: { readonly pageToken: KeyRing };
}

/** A valid request for a page of a list whose items have positions of the type `P`. */
export interface ParsedPage<F, O, P> {
  readonly scope: PageList;
  readonly filter: F;
  readonly order: O;
  /** Null for the first page. */
  readonly after: P | null;
  readonly now: number | null;
  readonly size: number;
}

/** Throws `INVALID_ARGUMENT` with every invalid field. `list` is that of `PageList`. */
export function parsePageRequest<F, O, P>(
  { rings, clock }: PagingContext,
  list: string,
  { pageSize, pageToken, filter, orderBy }: PageRequest,
  parseFilter: (text: string, now: () => number) => F,
  parseOrder: (text: string) => O,
): ParsedPage<F, O, P> {
  const scope = { list, filter, orderBy };
  const opened = attempt(() => (pageToken === "" ? null : openPageToken<P>(pageToken, scope, rings.pageToken)));
  // Stays null if the filter has no now(). Later pages have that of the first one.
  let now: number | null = null;
  const readNow = () => {
    now ??= (opened instanceof KeyholdError ? null : opened?.now) ?? clock.now();
    return now;
  };
  const [parsed, order, start, size] = checkAll(
    () => parseFilter(filter, readNow),
    () => parseOrder(orderBy),
    () => {
      if (opened instanceof KeyholdError) throw opened;
      return opened;
    },
    () => pageSizeOf(pageSize),
  );
  return { scope, filter: parsed, order, after: start?.after ?? null, now, size };
}

/**
 * Returns the items of a page, and the token of the next one, empty if this is the last. `found` has one item more than the page if there is
 * a next one; `sizeOf` returns the bytes of an item in the response.
 */
export function pageOf<T, P extends object>(
  { scope, now, size }: Pick<ParsedPage<unknown, unknown, P>, "scope" | "now" | "size">,
  found: readonly T[],
  sizeOf: (item: T) => number,
  positionOf: (item: T) => P,
  ring: KeyRing,
): { items: readonly T[]; nextPageToken: string } {
  // AIP-158 allows a page to have fewer items than requested.
  const items = found.slice(0, Math.min(size, countFitting(found, sizeOf)));
  const last = items.at(-1);
  if (found.length === items.length || last === undefined) return { items, nextPageToken: "" };
  return { items, nextPageToken: sealPageToken(scope, { after: positionOf(last), now }, ring) };
}

/** Returns the effective page size. */
export function pageSizeOf(wanted: number): number {
  if (wanted < 0) throw invalidArgument("page_size", "must not be negative", "OUT_OF_RANGE");
  return Math.min(wanted === 0 ? DEFAULT_PAGE_SIZE : wanted, MAX_PAGE_SIZE);
}
