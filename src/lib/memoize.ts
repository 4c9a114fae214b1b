/** The results of memoized functions for an object. */
const RESULTS = Symbol("results");

/** The result of one function, and those of others: a list, since an object has few and each access to memory counts. */
interface Result {
  of?: object;
  value?: unknown;
  next?: Result;
}

interface Memoizable {
  readonly [RESULTS]?: Result;
}

/** Freezes an object that is used many times, and lets memoized functions keep their results in it. It must be deeply immutable. */
export function memoizable<T extends object>(source: T): T {
  if (!Object.hasOwn(source, RESULTS)) {
    Object.defineProperty(source, RESULTS, { value: { of: undefined, value: undefined, next: undefined } });
  }
  return Object.freeze(source);
}

/**
 * Memoizes a function of `memoizable` objects by their identity, for as long as they live; for other objects it computes the result in
 * every call. An object as result is memoizable too, so that functions of it can be memoized. Errors are not memoized.
 *
 * @example const responseOf = memoize((verdict: Verdict) => describe(verdict));
 */
export function memoize<K extends object, V>(derive: (source: K & Memoizable) => V): (source: K) => V {
  return (source: K & Memoizable) => {
    const first = source[RESULTS];
    if (first === undefined) return derive(source);
    let result: Result | undefined = first;
    while (result !== undefined && result.of !== derive) result = result.next;
    if (result !== undefined) return result.value as V;
    const value = derive(source);
    if (isPlain(value)) memoizable(value);
    first.next = { ...first };
    first.of = derive;
    first.value = value;
    return value;
  };
}

/** Bytes cannot be frozen. */
function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}

/**
 * Memoizes a function of texts, such as the few that a configuration contains: the first `max` results that `keeps` accepts. Errors are not
 * memoized.
 */
export function memoizeFirst<V>(max: number, derive: (text: string) => V, keeps: (result: V) => boolean = () => true) {
  const results = new Map<string, V>();
  return (text: string): V => {
    const known = results.get(text);
    if (known !== undefined) return known;
    const result = derive(text);
    if (results.size < max && keeps(result)) results.set(text, result);
    return result;
  };
}

/**
 * Memoizes a function by the identity of its argument, which must not change, for as long as that lives. In a `WeakMap`, so for arguments that
 * are few and long-lived: `memoize` is for those that come and go. Errors are not memoized, nor is undefined.
 *
 * @example const indexOf = memoizeByIdentity((desc: DescMessage) => new Map(desc.fields.map((field) => [field.name, field])));
 */
export function memoizeByIdentity<K extends object, V>(derive: (source: K) => V): (source: K) => V {
  const results = new WeakMap<K, V>();
  return (source) => {
    let result = results.get(source);
    if (result === undefined) {
      result = derive(source);
      results.set(source, result);
    }
    return result;
  };
}
