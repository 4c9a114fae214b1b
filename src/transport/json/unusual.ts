/**
 * Thrown by the fast way on a value that it does not take, right or wrong; the generic way is then asked, whose result or error
 * counts. Made once: no trace of the stack is wanted.
 */
export const UNUSUAL = new Error("left to the generic way");

/** The fast way, and the generic one for what the fast one does not take. */
export function orGeneric<A, R>(fast: (value: A) => R, generic: (value: A) => R): (value: A) => R {
  return (value) => {
    try {
      return fast(value);
    } catch (error) {
      if (error !== UNUSUAL) throw error;
      return generic(value);
    }
  };
}

/** The fields of a message, or of what makes one, by their local names. */
export type Fields = Record<string, unknown>;

/** An object that is no array. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
