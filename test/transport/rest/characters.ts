import fc from "fast-check";

/** Any character except lone surrogates, ASCII half of the time. fast-check's own unit "binary" takes seconds to build. */
export const character = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((code) => String.fromCodePoint(code));
