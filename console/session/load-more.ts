interface Pages {
  readonly hasNextPage: boolean;
  fetchNextPage(options: { readonly cancelRefetch: boolean }): unknown;
}

/** Returns a function that reads the next page of a list, however often it is called meanwhile; undefined after the last page. */
export function loadMoreOf({ hasNextPage, fetchNextPage }: Pages): (() => void) | undefined {
  // By default, a call would cancel the one in flight and begin again.
  return hasNextPage ? () => void fetchNextPage({ cancelRefetch: false }) : undefined;
}
