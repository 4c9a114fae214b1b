/** Yields the items; `wait` requests and awaits each, and may give up. */
export async function* iterate<T>(items: AsyncIterable<T>, wait: <R>(next: () => Promise<R>) => Promise<R>) {
  const iterator = items[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await wait(() => iterator.next());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited, because it waits for the next item.
    void iterator.return?.().catch(() => undefined);
  }
}
