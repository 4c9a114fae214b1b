import fc from "fast-check";

/** Any string at all, lone surrogates too. (`unit: "binary"` of fast-check takes seconds to build its tables.) */
export const anyText = fc.array(fc.nat(0xffff), { maxLength: 200 }).map((units) => String.fromCharCode(...units));

/** Any string of printable ASCII: what comes nearest to a real text. */
export const anyAscii = fc.string({ unit: "grapheme-ascii", maxLength: 200 });
