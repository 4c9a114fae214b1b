/** A value or a promise of it. Code that has the value continues synchronously, without a microtask. */
export type MaybePromise<T> = T | Promise<T>;

/** Returns the result of `work`, or what `otherwise` returns for its error, which `work` may throw or reject with. */
export function recover<T>(work: () => MaybePromise<T>, otherwise: (error: unknown) => T): MaybePromise<T> {
  try {
    const result = work();
    return result instanceof Promise ? result.catch(otherwise) : result;
  } catch (error) {
    return otherwise(error);
  }
}

/** Applies `next` like `then`, but synchronously to a value that is not a promise. An error of `next` is thrown, or rejects. */
export function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
