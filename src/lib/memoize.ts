declare const SHARED: unique symbol;

function identity(value: object): object {
  return value;
}

/**
 * Stamps an object with a private field (ECMA-262, PrivateFieldAdd), which its copies do not have. A property or a `WeakSet` takes several
 * times as long.
 */
class Stamp extends (identity as unknown as new (value: object) => object) {
  readonly #isShared = true;

  static isOn(value: object): boolean {
    return #isShared in value;
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
  const results = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const known = results.get(key);
    if (known !== undefined) return known.value;
    const value = make(key);
    if (isShared(key)) results.set(key, { value });
    return value;
  };
}
