/** A value or a promise of it. Code that has the value continues synchronously, without a microtask. */
export type MaybePromise<T> = T | Promise<T>;

/** Applies `next` like `then`, but synchronously to a value that is not a promise. An error of `next` is thrown, or rejects. */
export function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
