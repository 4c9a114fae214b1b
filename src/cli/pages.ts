export interface PageRequest {
  readonly pageToken: string;
  readonly pageSize: number;
}

export interface PagingOptions {
  /** Maximum number of items; all by default. */
  readonly limit?: number;
  readonly pageSize: number;
}

/** Yields the pages of a list, in the memory of one page: each is read when it is consumed. */
export async function* pagesOf<T>(
  read: (page: PageRequest) => Promise<readonly [items: readonly T[], nextPageToken: string]>,
  { limit = Number.POSITIVE_INFINITY, pageSize }: PagingOptions,
): AsyncGenerator<readonly T[]> {
  let [left, pageToken] = [limit, ""];
  let items: readonly T[];
  do {
    [items, pageToken] = await read({ pageToken, pageSize: Math.min(left, pageSize) });
    yield items;
    left -= items.length;
  } while (pageToken !== "" && left > 0);
}
