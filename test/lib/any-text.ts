import fc from "fast-check";

/** Any string, including lone surrogates. (fast-check's `unit: "binary"` takes seconds to build its tables.) */
export const anyText = fc.array(fc.nat(0xffff), { maxLength: 200 }).map((units) => String.fromCharCode(...units));

/** Any string of printable ASCII. */
export const anyAscii = fc.string({ unit: "grapheme-ascii", maxLength: 200 });
