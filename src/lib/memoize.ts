/**
 * Makes what is made of a frozen object once, and gives it again as long as the object lives: it does not change. Of any other
 * object it is made each time, and nothing is remembered. What is frozen must be so through and through.
 */
export function memoize<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const made = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    // Looked up first: what is known is frozen, and to ask whether an object is takes longer.
    const known = made.get(key);
    if (known !== undefined) return known.value;
    if (!Object.isFrozen(key)) return make(key);
    const value = make(key);
    made.set(key, { value });
    return value;
  };
}
