import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deriveKeyRing, hmacSha256 } from "../../src/domain/server-keys.ts";
import { openPageToken, sealPageToken } from "../../src/paging/page-token.ts";
import { anyAscii, anyText } from "../lib/any-text.ts";

const root = Buffer.alloc(32, 1);
const nextRoot = Buffer.alloc(32, 2);
const ring = deriveKeyRing({ current: root, retired: [] }, "page-token");
const nextRing = deriveKeyRing({ current: nextRoot, retired: [root] }, "page-token");
const list = { list: "ListIssuedApiKeys", filter: 'actor_id="alice"', orderBy: "" };
const keyId = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";
const position = { after: { keyId, value: null }, now: null };
const token = sealPageToken(list, position, ring);
/** With the time of the first page. */
const timed = sealPageToken(list, { ...position, now: Date.parse("2026-11-22T10:00:00.123Z") }, ring);

const REFUSED = "page_token: must be a next_page_token returned by the same method for the same filter and order_by";

test("a token opens only for its own list", () => {
  const lists = fc.record({
    list: fc.constantFrom("ListIssuedApiKeys", "ListImportedApiKeys"),
    filter: anyText,
    orderBy: fc.constantFrom("", "name", "name desc"),
  });
  const starts = fc.record({
    after: fc.oneof(
      fc.record({ keyId: fc.uuid({ version: 7 }), value: fc.option(anyText.map((text) => text.toWellFormed())) }),
      fc.record({ seq: fc.nat(), value: fc.constant(null) }),
    ),
    now: fc.option(fc.nat(2 ** 45)),
  });
  fc.assert(
    fc.property(lists, lists, starts, (own, other, start) => {
      const sealed = sealPageToken(own, start, ring);
      expect(openPageToken(sealed, own, ring)).toEqual(start);
      if (other.list !== own.list || other.filter !== own.filter || other.orderBy !== own.orderBy) {
        expect(() => openPageToken(sealed, other, ring)).toThrow(REFUSED);
      }
    }),
  );
});

test("a token has 44 URL-safe characters for any filter and order", () => {
  const other = { ...list, filter: "x".repeat(2000), orderBy: "expire_time desc" };
  expect(sealPageToken(other, position, ring)).toMatch(/^[\w-]{44}$/);
  expect(timed).toMatch(/^[\w-]+$/);
});

test("a token opens with the longest name, of characters that JSON escapes", () => {
  const start = { after: { keyId, value: "\u0001".repeat(256) }, now: 1 };
  expect(openPageToken(sealPageToken(list, start, ring), list, ring)).toEqual(start);
});

test("tokens stay valid under a retired root secret, and new ones use the current one", () => {
  expect(openPageToken(token, list, nextRing)).toEqual(position);
  expect(() => openPageToken(sealPageToken(list, position, nextRing), list, ring)).toThrow(REFUSED);
});

test.each([token, timed])("any single changed character of %s is refused", (token) => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. é";
  for (let at = 0; at < token.length; at++) {
    for (const other of alphabet.replace(token.charAt(at), "")) {
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      expect(() => openPageToken(changed, list, ring)).toThrow(REFUSED);
    }
  }
});

describe("refuses", () => {
  test.each([
    { why: "the empty text", text: "", of: list },
    { why: "the bare key id", text: keyId, of: list },
    { why: "padding", text: `${token}=`, of: list },
    { why: "white space", text: ` ${token}`, of: list },
    { why: "a token cut short", text: token.slice(0, -1), of: list },
    { why: "a token twice", text: token + token, of: list },
    { why: "another filter", text: token, of: { ...list, filter: "" } },
    { why: "a filter written otherwise", text: token, of: { ...list, filter: 'actor_id = "alice"' } },
    { why: "another order", text: token, of: { ...list, orderBy: "create_time desc" } },
    { why: "another list", text: token, of: { ...list, list: "ListImportedApiKeys" } },
    { why: "list and filter run together", text: token, of: { ...list, list: `${list.list}","` } },
    { why: "a text of millions of characters", text: "A".repeat(10_000_000), of: list },
  ])("$why", ({ text, of }) => {
    expect(() => openPageToken(text, of, ring)).toThrow(
      expect.objectContaining({
        code: "INVALID_ARGUMENT",
        violations: [expect.objectContaining({ field: "page_token" })],
      }),
    );
  });

  test("another version, even when sealed by this server", () => {
    const seal = (version: number) => {
      const body = Buffer.concat([Buffer.of(version), Buffer.from(keyId.replaceAll("-", ""), "hex")]);
      const tag = hmacSha256(ring.current, body, JSON.stringify([list.list, list.filter])).subarray(0, 16);
      return Buffer.concat([body, tag]).toString("base64url");
    };
    expect(seal(1)).toBe(token);
    expect(() => openPageToken(seal(3), list, ring)).toThrow(REFUSED);
  });

  test("any other text", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, anyAscii, fc.stringMatching(/^[\w-]{44}$/)), (text) => {
        expect(() => openPageToken(text, list, ring)).toThrow(REFUSED);
      }),
      { numRuns: 500 },
    );
  });
});
