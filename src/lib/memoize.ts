declare const SHARED: unique symbol;

function identity(value: object): object {
  return value;
}

/** A result of one function, and the results of others for the same argument. */
interface Result {
  readonly of: object;
  readonly value: unknown;
  readonly next: Result | undefined;
}

/**
 * Adds a private field with memoized results to an object (ECMA-262, PrivateFieldAdd), which its copies do not have. A `WeakMap` takes
 * three times as long.
 */
class Stamp extends (identity as unknown as new (value: object) => object) {
  #results: Result | undefined;

  static isOn(value: object): boolean {
    return #results in value;
  }

  static find(value: object, of: object): Result | undefined {
    let result = #results in value ? value.#results : undefined;
    while (result !== undefined && result.of !== of) result = result.next;
    return result;
  }

  static add(stamped: object, of: object, value: unknown): void {
    if (#results in stamped) stamped.#results = { of, value, next: stamped.#results };
  }
}

/** A deeply frozen value that is returned many times, so that values derived from it may be cached by its identity. */
export type Shared<T extends object> = T & { readonly [SHARED]: true };

/**
 * Freezes a value and marks it as shared. Its properties must be immutable too. A copy is not shared.
 *
 * @example const OVERLOADED = share(new KeyholdError("OVERLOADED", "server overloaded"));
 */
export function share<T extends object>(value: T): Shared<T> {
  if (!Stamp.isOn(value)) new Stamp(value);
  return Object.freeze(value) as Shared<T>;
}

export function isShared<T extends object>(value: T): value is Shared<T> {
  return Stamp.isOn(value);
}

/** Returns `derived`, shared if the value is that it was derived from. */
export function sharedLike<T extends object>(source: object, derived: T): T {
  return isShared(source) ? share(derived) : derived;
}

/**
 * Memoizes by identity; arguments must be deeply frozen, which `Shared` ones are. For others `make` is called each time. Results live as
 * long as their argument. Errors are not memoized.
 */
export function memoize<K extends object, V>(make: (key: K) => V): (key: K) => V {
  return (key) => {
    const known = Stamp.find(key, make);
    if (known !== undefined) return known.value as V;
    const value = make(key);
    Stamp.add(key, make, value);
    return value;
  };
}
