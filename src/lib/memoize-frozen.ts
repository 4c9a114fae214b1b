/**
 * Memoizes a function by the identity of its argument, for as long as that lives. Frozen arguments only, which must be deeply immutable:
 * an object that is used once would cost more in the map than it saves. A result is frozen too, so that functions of it can be memoized.
 * Errors are not memoized.
 *
 * @example const responseOf = memoizeFrozen((verdict: Verdict) => describe(verdict));
 */
export function memoizeFrozen<K extends object, V>(derive: (source: K) => V): (source: K) => V {
  const results = new WeakMap<K, V>();
  return (source) => {
    const known = results.get(source);
    if (known !== undefined) return known;
    const result = derive(source);
    // Bytes cannot be frozen.
    if (Object.isFrozen(source)) results.set(source, ArrayBuffer.isView(result) ? result : Object.freeze(result));
    return result;
  };
}
