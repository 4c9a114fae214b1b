import fc from "fast-check";
import macaroonPackage from "macaroon";
import { expect, test } from "vitest";
import { deriveKeyRing } from "../../../src/domain/server-keys.ts";
import { chainSignature } from "../../../src/token/macaroon/chain.ts";
import type { Macaroon } from "../../../src/token/macaroon/format.ts";
import { formatIdentifier, type MacaroonIdentifier } from "../../../src/token/macaroon/identifier.ts";
import { type MacaroonInput, mintMacaroon } from "../../../src/token/macaroon/mint.ts";
import { formatMacaroon, parseMacaroon } from "../../../src/token/macaroon/text.ts";
import { encodeV2 } from "../../../src/token/macaroon/v2.ts";
import { verifyMacaroon } from "../../../src/token/macaroon/verify.ts";
import { anyText } from "../../lib/any-text.ts";
import { withCaveats } from "../../support/macaroon-caveats.ts";
import { ISSUER, input, inputs, NOW, RING, scopes } from "./samples.ts";

const context = { keys: RING, issuer: ISSUER, now: NOW };

test("a minted macaroon verifies with the same content", () => {
  fc.assert(
    fc.property(inputs, ({ rootKey, ...content }) => {
      const { token } = mintMacaroon({ rootKey, ...content });
      expect(verifyMacaroon(token, { ...context, issuer: content.issuer })).toEqual({ ok: true, token: content });
    }),
  );
});

test("expires to the millisecond", () => {
  const { token } = mintMacaroon(input({ expireTime: NOW }));
  expect(verifyMacaroon(token, { ...context, now: NOW - 1 })).toMatchObject({ ok: true, token: { expireTime: NOW } });
  expect(verifyMacaroon(token, context)).toMatchObject({ ok: false, reason: "EXPIRED" });
});

test("expires at the earliest of its times", () => {
  const token = withCaveats(mint(), ["time < 2026-01-02T03:04:06Z", "time < 2026-01-02T03:30:00Z"]);
  const end = Date.parse("2026-01-02T03:04:06Z");
  expect(verifyMacaroon(token, { ...context, now: end - 1 })).toMatchObject({ ok: true, token: { expireTime: end } });
  expect(verifyMacaroon(token, { ...context, now: end })).toMatchObject({ ok: false, reason: "EXPIRED" });
});

test("a macaroon of a retired root key verifies, and one of an unknown root key does not", () => {
  const [, retired = RING.current] = RING.all;
  expect(verifyMacaroon(mint({ rootKey: retired }), context).ok).toBe(true);
  const { current } = deriveKeyRing({ current: new Uint8Array(32).fill(3), retired: [] }, "macaroon-root");
  expect(refusal(mint({ rootKey: current }))).toBe("SIGNATURE_INVALID");
});

test("the id of a root key is not its secret", () => {
  const [, retired = RING.current] = RING.all;
  expect(refusal(mint({ rootKey: { id: RING.current.id, secret: retired.secret } }))).toBe("SIGNATURE_INVALID");
});

test("rejects a macaroon of another issuer or without one", () => {
  expect(refusal(mint({ issuer: "https://other.example.com" }))).toBe("SIGNATURE_INVALID");
  expect(refusal(edit({ location: undefined }))).toBe("SIGNATURE_INVALID");
  expect(refusal(edit({ location: "" }))).toBe("SIGNATURE_INVALID");
});

test("rejects removed, swapped or changed caveats", () => {
  const { caveats } = parseMacaroon(mint());
  expect(caveats).toHaveLength(3);
  expect(refusal(edit({ caveats: caveats.slice(0, -1) }))).toBe("SIGNATURE_INVALID");
  expect(refusal(edit({ caveats: caveats.toReversed() }))).toBe("SIGNATURE_INVALID");
  expect(refusal(edit({ caveats: [] }))).toBe("SIGNATURE_INVALID");
  expect(refusal(edit({ caveats: [...caveats, ...caveats] }))).toBe("SIGNATURE_INVALID");
});

test("rejects any bit flip", () => {
  const encoded = Buffer.from(encodeV2(parseMacaroon(mint())));
  expect(encoded.length).toBeGreaterThan(200);
  for (let bit = 0; bit < encoded.length * 8; bit += 1) {
    const flipped = Buffer.from(encoded);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(verifyMacaroon(flipped.toString("base64url"), context).ok, `bit ${bit}`).toBe(false);
  }
});

test("rejects any change of one character", () => {
  const text = mint();
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 1 }), (at, put) => {
      const changed = text.slice(0, at) + put + text.slice(at + 1);
      expect(verifyMacaroon(changed, context).ok).toBe(changed === text);
    }),
  );
});

test("never throws", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        anyText,
        fc.uint8Array().map((data) => Buffer.of(2, ...data).toString("base64url")),
      ),
      (text) => {
        expect(refusal(text)).toBe("INVALID_FORMAT");
      },
    ),
  );
});

test("checks the signature before caveats, and caveats before expiry", () => {
  const expired = mint({ expireTime: NOW - 1 });
  expect(refusal(expired)).toBe("EXPIRED");
  expect(refusal(withCaveats(expired, ["ip = 10.0.0.1"]))).toBe("SIGNATURE_INVALID");
  const forged = edit({ signature: new Uint8Array(32) }, withCaveats(expired, ["ip = 10.0.0.1"]));
  expect(verifyMacaroon(forged, context)).toMatchObject({ message: "the signature of the macaroon is not valid" });
});

/** Only the server can sign these, but it validates them too. */
test.each([
  ["too many minted caveats", 4],
  ["too few minted caveats", 1],
  ["no minted caveats", 0],
])("an identifier with %s grants nothing", (_, mintedCaveats) => {
  expect(refusal(sign({ mintedCaveats }))).toBe("SIGNATURE_INVALID");
  expect(verifyMacaroon(sign({ mintedCaveats: 3 }), context).ok).toBe(true);
});

test("a holder's claim is a restriction, never an assertion", () => {
  const token = mint();
  expect(verifyMacaroon(withCaveats(token, ['claim team = "blue"']), context)).toEqual(verifyMacaroon(token, context));
  expect(refusal(withCaveats(token, ['claim team = "red"']))).toBe("SIGNATURE_INVALID");
  expect(refusal(withCaveats(token, ["claim admin = true"]))).toBe("SIGNATURE_INVALID");
});

test("attenuation is monotone", () => {
  fc.assert(
    fc.property(inputs, fc.array(conditions, { maxLength: 4 }), conditions, (sample, added, last) => {
      const before = verdict(sample, added);
      const after = verdict(sample, [...added, last]);
      if (!after.ok) return;
      if (!before.ok) throw new Error("a caveat made a bad macaroon good");
      const { scopes, expireTime, ...rest } = after.token;
      expect(before.token).toMatchObject(rest);
      expect(before.token.claims).toEqual(rest.claims);
      expect(before.token.scopes).toEqual(expect.arrayContaining([...scopes]));
      expect(expireTime).toBeLessThanOrEqual(before.token.expireTime);
    }),
  );
});

test("grants the intersection of its caveats", () => {
  fc.assert(
    fc.property(inputs, fc.array(fc.oneof(timeConditions, scopeConditions), { maxLength: 4 }), (sample, added) => {
      const limits = added.flatMap(({ limit }) => limit ?? []);
      const lists = added.flatMap(({ list }) => (list === undefined ? [] : [list]));
      const expireTime = Math.min(sample.expireTime, ...limits);
      const after = verdict(sample, added);
      const granted = sample.scopes.filter((scope) => lists.every((list) => list.includes(scope)));
      if (expireTime <= NOW) expect(after).toMatchObject({ ok: false, reason: "EXPIRED" });
      else expect(after).toMatchObject({ ok: true, token: { expireTime, scopes: granted, claims: sample.claims } });
    }),
  );
});

test("the macaroon package reads a token and adds a caveat that the verifier accepts", () => {
  const theirs = macaroonPackage.importMacaroon(encodeV2(parseMacaroon(mint())));
  theirs.verify(RING.current.secret.export(), () => null);
  theirs.addFirstPartyCaveat("scope = orders.read");
  const caveats = theirs.caveats.map(({ identifier }) => ({ identifier, thirdParty: undefined }));
  const token = formatMacaroon({
    ...theirs,
    location: theirs.location,
    identifier: theirs.identifier,
    signature: theirs.signature,
    caveats,
  });
  expect(verifyMacaroon(token, context)).toMatchObject({ ok: true, token: { scopes: ["orders.read"] } });
});

interface Condition {
  readonly text: string;
  readonly limit?: number;
  readonly list?: readonly string[];
}

const timeConditions: fc.Arbitrary<Condition> = fc
  .integer({ min: NOW - 1000, max: NOW + 100_000 })
  .map((limit) => ({ text: `time < ${new Date(limit).toISOString()}`, limit }));
/** From few letters, so that they often match granted scopes. */
const scopeConditions: fc.Arbitrary<Condition> = fc
  .array(fc.oneof(scopes, fc.stringMatching(/^[!-~]$/)), { maxLength: 20 })
  .map((list) => ({ text: `scope = ${list.join(" ")}`, list }));
const claimConditions: fc.Arbitrary<Condition> = fc.json().map((json) => ({ text: `claim a = ${json}` }));
const conditions = fc.oneof(timeConditions, scopeConditions, claimConditions);

function mint(fields: Partial<MacaroonInput> = {}): string {
  return mintMacaroon(input(fields)).token;
}

function edit(parts: Partial<Macaroon>, token = mint()): string {
  return formatMacaroon({ ...parseMacaroon(token), ...parts });
}

function verdict(sample: MacaroonInput, added: readonly Condition[]) {
  const token = withCaveats(
    mintMacaroon(sample).token,
    added.map(({ text }) => text),
  );
  return verifyMacaroon(token, { ...context, issuer: sample.issuer });
}

function refusal(token: string): string {
  const judged = verifyMacaroon(token, context);
  return judged.ok ? "ok" : judged.reason;
}

function sign(fields: Partial<MacaroonIdentifier>): string {
  const { tokenId, keyId, secretVersion, issueTime } = input();
  const identifier = formatIdentifier({
    ...{ rootKeyId: RING.current.id, tokenId, keyId, secretVersion, issueTime, mintedCaveats: 3 },
    ...fields,
  });
  const { caveats } = parseMacaroon(mint());
  const conditions = caveats.map((caveat) => caveat.identifier);
  return edit({ identifier, signature: chainSignature(RING.current.secret.export(), identifier, conditions) });
}
