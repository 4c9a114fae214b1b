import fc from "fast-check";
import { deriveKeyRing, type ServerKey } from "../../../src/domain/server-keys.ts";
import { decodeBase64url } from "../../../src/lib/bytes.ts";
import type { JsonObject } from "../../../src/lib/json.ts";
import { isClaimName } from "../../../src/token/macaroon/caveat-kinds.ts";
import type { Caveat, Macaroon } from "../../../src/token/macaroon/format.ts";
import type { MacaroonInput } from "../../../src/token/macaroon/mint.ts";
import { anyText } from "../../lib/any-text.ts";

export const RING = deriveKeyRing(
  { current: new Uint8Array(32).fill(1), retired: [new Uint8Array(32).fill(2)] },
  "macaroon-root",
);
export const ISSUER = "https://keys.example.com";
export const NOW = Date.parse("2026-01-02T03:04:05.500Z");

/** A macaroon input with defaults for the other fields. */
export function input(fields: Partial<MacaroonInput> = {}): MacaroonInput {
  return {
    rootKey: RING.current,
    issuer: ISSUER,
    tokenId: "01890a5d-ac96-774b-bcce-b302099a8058",
    keyId: "01890a5d-ac96-774b-bcce-b302099a8057",
    secretVersion: 1,
    issueTime: NOW - 500,
    expireTime: NOW + 3_600_000,
    scopes: ["orders.read", "orders.write"],
    claims: { team: "blue" },
    ...fields,
  };
}

export function bytes(text: string): Uint8Array {
  return Buffer.from(text, "utf8");
}

export function fromBase64url(text: string): Uint8Array {
  const decoded = decodeBase64url(text);
  if (decoded === undefined) throw new TypeError("not base64url");
  return decoded;
}

const text = anyText.map((value) => value.slice(0, 20).toWellFormed());
/** As Buffers, like the parser's result. */
const data = fc.uint8Array({ maxLength: 200 }).map((value) => Buffer.from(value));
const thirdParties = fc.record({ location: fc.option(text, { nil: undefined }), verificationId: data });

const caveats: fc.Arbitrary<Caveat> = fc.record({
  identifier: data,
  thirdParty: fc.option(thirdParties, { nil: undefined }),
});

/** Any macaroon within the limits, of any service. */
export const macaroons: fc.Arbitrary<Macaroon> = fc.record({
  location: fc.option(text, { nil: undefined }),
  identifier: data,
  caveats: fc.array(caveats, { maxLength: 8 }),
  signature: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((value) => Buffer.from(value)),
});

export const scopes = fc.stringMatching(/^[\x21-\x7e]{1,10}$/);
const anyNames = anyText.map((value) => value.slice(0, 10)).filter(isClaimName);
const names = fc.oneof(anyNames, fc.constantFrom("__proto__", "=", "toString", "1"));
/** JSON has no -0. */
const values = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)));

export const claims: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(names, values), { maxLength: 5 })
  .map((entries) => Object.fromEntries(entries));

export const times = fc.integer({
  min: Date.parse("0000-01-01T00:00:00Z"),
  max: Date.parse("9999-12-31T23:59:59.999Z"),
});

const ids = fc.stringMatching(/^[\x21-\x7e]{1,40}$/);
const keys: fc.Arbitrary<ServerKey> = fc.constantFrom(...RING.all);

/** Any input that can be minted, valid at `NOW`. */
export const inputs: fc.Arbitrary<MacaroonInput> = fc
  .record({
    rootKey: keys,
    issuer: text,
    tokenId: ids,
    keyId: fc.uuid(),
    secretVersion: fc.maxSafeNat(),
    issueTime: fc.integer({ min: 0, max: 253_402_300_799 }).map((seconds) => seconds * 1000),
    expireTime: times.filter((time) => time > NOW),
    scopes: fc.array(scopes, { maxLength: 6 }),
    claims,
    parentId: fc.option(ids, { nil: undefined }),
    audience: fc.option(fc.array(scopes, { minLength: 1, maxLength: 4 }), { nil: undefined }),
  })
  .map(({ parentId, audience, ...rest }) => ({
    ...rest,
    ...(parentId !== undefined && { parentId }),
    ...(audience !== undefined && { audience }),
  }));
