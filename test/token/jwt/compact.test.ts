import { expect, test } from "vitest";
import { decodeCompact, encodeCompact, looksLikeJwt } from "../../../src/token/jwt/compact.ts";

const SIGNATURE = new Uint8Array(64);

function jws(header: Record<string, string>): string {
  return encodeCompact(header, { sub: "actor" }, () => SIGNATURE);
}

// The parsed header is cached while tokens have the same one; the result for one must never be used for another.
test("caches headers correctly in any order of tokens", () => {
  const headers = ["key-1", "key-2", "key-3"].map((kid) => ({ alg: "EdDSA", typ: "JWT", kid }));
  for (const place of [0, 0, 1, 0, 2, 2, 1, 1, 0]) {
    const header = headers[place] ?? {};
    expect(looksLikeJwt(jws(header))).toBe(true);
    expect(decodeCompact(jws(header))?.header).toEqual(header);
  }
});

test("a cached header does not validate a damaged one", () => {
  const good = jws({ alg: "EdDSA", typ: "JWT", kid: "key-1" });
  const [head = "", ...rest] = good.split(".");
  expect(decodeCompact(good)).toBeDefined();
  for (const damaged of [head.slice(0, -1), `${head}=`, `${head}A`, head.toLowerCase(), ""]) {
    expect(decodeCompact([damaged, ...rest].join("."))).toBeUndefined();
  }
  expect(looksLikeJwt(jws({ typ: "JWT", kid: "key-1" }))).toBe(false);
  expect(looksLikeJwt(good)).toBe(true);
});

test.each(["", "e30", "e30.e30", "e30.e30.AA.AA"])("%j is not three parts", (text) => {
  expect(decodeCompact(text)).toBeUndefined();
});
