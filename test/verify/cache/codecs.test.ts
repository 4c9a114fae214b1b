import fc from "fast-check";
import { expect, test } from "vitest";
import type { KeySecret, VerifiableKey } from "../../../src/domain/key.ts";
import type { VerifiableRecord } from "../../../src/domain/key-lookup.ts";
import { decodeIdentified, encodeIdentified } from "../../../src/verify/cache/credential-codec.ts";
import { decodeRecord, encodeRecord } from "../../../src/verify/cache/key-codec.ts";
import { identifiedByHash, identifiedSecret, identifiedToken } from "../../../src/verify/identified.ts";
import { NO_CONTROLS } from "../fixture.ts";

const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

const SECRETS: readonly KeySecret[] = [
  { version: 7, digest: { keyId: "0123456789abcdef", digest: new Uint8Array(32).fill(0xaa) }, expireTime: null },
  { version: 6, digest: { keyId: "fedcba9876543210", digest: new Uint8Array(32).fill(0xbb) }, expireTime: new Date(5) },
];

const KEY: VerifiableKey = {
  ...{ keyId: KEY_ID, kind: "imported", actorId: "actor_1", scopes: ["read", "é"], metadata: { env: "prod" } },
  ...{ expireTime: new Date(1_790_000_000_123), revokeTime: null, ...NO_CONTROLS },
};

function bytesOf(record: VerifiableRecord): Buffer {
  const into = Buffer.alloc(65_536);
  return into.subarray(0, encodeRecord(record, into));
}

test("a key without controls takes no space for them", () => {
  const json = '[1,"actor_1",["read","é"],{"env":"prod"},1790000000123,null,[[7,null],[6,5]]]';
  const digests = `0123456789abcdef${"aa".repeat(32)}fedcba9876543210${"bb".repeat(32)}`;
  const expected = Buffer.concat([Buffer.from(`02${digests}`, "hex"), Buffer.from(json)]);
  expect(bytesOf({ key: KEY, secrets: SECRETS })).toEqual(expected);
});

test("a token without an audience takes no more space than before there were any", () => {
  const facts = { tokenId: "t", secretVersion: 3, scopes: ["read"], claims: { a: 1 }, expireTime: 9 };
  const token = identifiedToken("JWT", KEY_ID, { ...facts, audience: undefined });
  const into = Buffer.alloc(1024);
  const expected = Buffer.concat([
    Buffer.from(`02${KEY_ID.replaceAll("-", "")}`, "hex"),
    Buffer.from('["t",3,["read"],{"a":1},9]'),
  ]);
  expect(into.subarray(0, encodeIdentified(token, into))).toEqual(expected);
});

const [SECRET] = SECRETS as [KeySecret];
const { keyId, digest } = SECRET.digest;

test.each([
  ["a byte less", { keyId, digest: digest.subarray(1) }],
  ["a byte more", { keyId, digest: new Uint8Array(33) }],
  ["a key id of a byte less", { keyId: keyId.slice(2), digest }],
  ["a key id of a byte more", { keyId: `${keyId}00`, digest }],
  ["a key id of half a byte less", { keyId: keyId.slice(1), digest }],
  ["a key id that is not hexadecimal", { keyId: `${keyId.slice(2)}zz`, digest }],
])("a digest with %s is not cached", (_, malformed) => {
  const into = Buffer.alloc(1024);
  const secrets = [SECRET, { ...SECRET, digest: malformed }];
  expect(encodeRecord({ key: KEY, secrets }, into)).toBeNaN();
  expect(encodeIdentified(identifiedSecret(KEY_ID, [SECRET.digest, malformed]), into)).toBeNaN();
  expect(encodeIdentified(identifiedByHash([SECRET.digest], malformed), into)).toBeNaN();
});

test("a key with more than 100 secrets is not cached", () => {
  const into = Buffer.alloc(65_536);
  const lengthWith = (count: number) => encodeRecord({ key: KEY, secrets: Array(count).fill(SECRET) }, into);
  expect([lengthWith(100), lengthWith(101)]).toEqual([expect.any(Number), Number.NaN]);
  expect(lengthWith(100)).toBeGreaterThan(4_000);
});

const time = fc.option(fc.integer({ min: 0, max: 2 ** 42 }).map((ms) => new Date(ms)));
const texts = fc.option(fc.array(fc.string({ maxLength: 8 }), { maxLength: 4 }));
const controls = fc.record({ disableTime: time, allowedCidrs: texts, restrictedToActorIds: texts });
const kind = fc.constantFrom("issued" as const, "imported" as const);

test("a key with controls is decoded as it was encoded, and takes more space only if it has any", () => {
  fc.assert(
    fc.property(controls, kind, time, fc.nat(2), (set, kind, expireTime, count) => {
      const record = { key: { ...KEY, kind, expireTime, ...set }, secrets: SECRETS.slice(0, count) };
      const [bytes, bare] = [bytesOf(record), bytesOf({ ...record, key: { ...record.key, ...NO_CONTROLS } })];
      expect(decodeRecord(KEY_ID, bytes)).toEqual(record);
      expect(bytes.length > bare.length).toBe(Object.values(set).some((value) => value !== null));
    }),
    { numRuns: 500 },
  );
});

test("a token with an audience is decoded as it was encoded", () => {
  const facts = { tokenId: "t", secretVersion: 3, scopes: ["read"], claims: { a: 1 }, expireTime: 9 };
  const into = Buffer.alloc(1024);
  for (const audience of [undefined, ["books"], ["books", "films"]]) {
    const token = identifiedToken("MACAROON", KEY_ID, { ...facts, audience });
    expect(decodeIdentified(into.subarray(0, encodeIdentified(token, into)))).toEqual(token);
  }
});
