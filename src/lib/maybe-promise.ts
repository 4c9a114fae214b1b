/** A value at hand, or the promise of one: what is at hand must not wait for a turn of the event loop. */
export type MaybePromise<T> = T | Promise<T>;

/** `then` without a promise where there is none. What `next` throws is thrown, or rejects. */
export function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
