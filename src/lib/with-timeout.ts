/**
 * Returns the result of `work`, or the result of `onTimeout` (or what it throws) when `work` takes longer than these milliseconds.
 * `work` is not cancelled; what it rejects with after that is ignored.
 *
 * @example
 * await withTimeout(answer, 1_000, () => { throw new Error("the server did not answer within 1 s"); });
 */
export async function withTimeout<T, U>(
  work: PromiseLike<T>,
  milliseconds: number,
  onTimeout: () => U,
): Promise<T | U> {
  const late = Promise.withResolvers<U>();
  const timer = setTimeout(() => late.resolve(new Promise((resolve) => resolve(onTimeout()))), milliseconds);
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}
