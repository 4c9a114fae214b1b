/**
 * Returns the result of `work`, or the result of `onTimeout` (or what it throws) when `work` takes longer than these milliseconds.
 * `work` is not cancelled; what it rejects with after that is ignored.
 * A result that arrived while the event loop was blocked is in time.
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
  let isOver = false;
  const end = () => isOver || late.resolve(new Promise((resolve) => resolve(onTimeout())));
  const timer = setLateTimeout(end, milliseconds);
  return Promise.race([work, late.promise]).finally(() => {
    isOver = true;
    clearTimeout(timer);
  });
}

/** Like `setTimeout`, but what arrived while the event loop was blocked is read before `run` is called: timers run before sockets are read. */
export function setLateTimeout(run: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(() => setImmediate(run), milliseconds);
}
