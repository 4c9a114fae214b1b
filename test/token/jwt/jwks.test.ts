import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jwksDocument, jwksEtag } from "../../../src/token/jwks.ts";
import { ALGORITHM_NAMES } from "../../../src/token/jwt/algorithms.ts";
import type { SigningKeyRecord } from "../../../src/token/signing-key.ts";
import { HOUR, NOW, record } from "./fixtures.ts";

const retired = { retireTime: new Date(NOW), tokensExpireTime: new Date(NOW + HOUR) };
const oldest = record({ ...retired, createTime: new Date(NOW - 2) });
const older = record({ ...retired, createTime: new Date(NOW - 1), tokensExpireTime: new Date(NOW + 2 * HOUR) });
const newest = record();
const RECORDS = [older, newest, oldest];

const kids = (records: readonly SigningKeyRecord[], now: number) =>
  jwksDocument(records, now).keys.map(({ kid }) => kid);

test("newest first; a retired key is removed when its last token has expired", () => {
  expect(kids(RECORDS, NOW)).toEqual([newest.kid, older.kid, oldest.kid]);
  expect(kids(RECORDS, NOW + HOUR - 1)).toEqual([newest.kid, older.kid, oldest.kid]);
  expect(kids(RECORDS, NOW + HOUR)).toEqual([newest.kid, older.kid]);
  expect(kids(RECORDS, NOW + 2 * HOUR)).toEqual([newest.kid]);
});

test("without keys the set is empty", () => {
  expect(jwksDocument([], NOW)).toEqual({ keys: [] });
});

test.each(ALGORITHM_NAMES)("has the public members of a key for %s only", (algorithm) => {
  const { publicJwk, ...rest } = record({}, algorithm);
  const careless = { ...publicJwk, d: "private", ext: true };
  const { keys } = jwksDocument([{ ...rest, publicJwk: careless }], NOW);
  expect(keys).toStrictEqual([publicJwk]);
});

test("has keys of both algorithms", () => {
  const both = [newest, record({ ...retired, createTime: new Date(NOW - 1) }, "ES256")];
  expect(jwksDocument(both, NOW).keys.map(({ alg }) => alg)).toEqual(["EdDSA", "ES256"]);
});

describe("the ETag", () => {
  test("is strong", () => {
    expect(jwksEtag(jwksDocument(RECORDS, NOW))).toMatch(/^"[\w-]{43}"$/);
  });

  test("does not depend on the order of records and members", () => {
    const twins = [...RECORDS, record(), record({}, "ES256")];
    const expected = jwksEtag(jwksDocument(twins, NOW));
    fc.assert(
      fc.property(fc.shuffledSubarray(twins, { minLength: twins.length }), (shuffled) => {
        const reordered = shuffled.map((one) => ({ ...one, publicJwk: reverseMembers(one.publicJwk) }));
        expect(jwksEtag(jwksDocument(reordered, NOW))).toBe(expected);
      }),
    );
  });

  test("changes when a key is added or removed", () => {
    const tags = [RECORDS, [...RECORDS, record()], [newest]].map((records) => jwksEtag(jwksDocument(records, NOW)));
    expect(new Set([...tags, jwksEtag(jwksDocument(RECORDS, NOW + HOUR))]).size).toBe(4);
  });
});

/** Reorders members like a database that does not preserve their order. */
function reverseMembers<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).toReversed()) as T;
}
