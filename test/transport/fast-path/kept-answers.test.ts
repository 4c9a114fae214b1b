import fc from "fast-check";
import { expect, test } from "vitest";
import { authorizeBy } from "../../../src/api/gateways/authorize.ts";
import { verificationOf } from "../../../src/api/v2alpha1/verification.ts";
import type { Valid } from "../../../src/domain/verdict.ts";
import { writeVerifyJson, writeVerifyProto } from "../../../src/transport/fast-path/codecs.ts";
import { forwardAuthRoute } from "../../../src/transport/fast-path/gateway-routes.ts";
import { uncounted } from "../../../src/transport/pipeline/access-log.ts";
import { verify, verifyAll } from "../../../src/verify/verify.ts";
import { fieldsOf, HOUR, NOW, newFixture } from "../../verify/fixture.ts";

const ISSUER = 'https://keyhold.test/é"';

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const change = fc.record({
  actorId: text,
  scopes: fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 4 }),
  metadata: fc.dictionary(text, text, { maxKeys: 3, noNullPrototype: true }),
  expireTime: fc.option(fc.integer({ min: NOW + 1, max: NOW + 2 * HOUR }).map((time) => new Date(time))),
});
const kind = fc.constantFrom("ISSUED_API_KEY", "IMPORTED_API_KEY", "JWT", "MACAROON");

const route = forwardAuthRoute(
  { pipeline: {}, clientAddressOf: () => "", onDecision: () => {} } as unknown as Parameters<
    typeof forwardAuthRoute
  >[0],
  uncounted,
);

/** Returns the answers of all protocols that keep them with the verdict. */
function answersTo(verdict: Valid) {
  const gateway = authorizeBy(
    { verify: () => verdict },
    { credentials: [{ kind: "bearer" }], metadata: ["team", "é"] },
  );
  const source = { header: (name: string) => (name === "authorization" ? ["Bearer x"] : []), originalUri: undefined };
  const request = { ...source, requiredScopes: [], charges: [], audience: undefined, clientIp: "" };
  const log = { add: () => {}, accepted: () => {} };
  const decision = gateway(request)({} as never, { log } as never);
  if (decision instanceof Promise) expect.unreachable();
  return {
    json: writeVerifyJson(verificationOf(verdict, ISSUER)),
    proto: Buffer.from(writeVerifyProto(verificationOf(verdict, ISSUER))).toString("hex"),
    headers: route.answer({ id: "1", method: "GET" } as never, decision).headers,
  };
}

test("an answer that is kept with a cached verdict is the one that its fields have", async () => {
  let kept = 0;
  await fc.assert(
    fc.asyncProperty(kind, change, async (kind, change) => {
      const fixture = newFixture();
      const { keyId, credential } =
        kind === "IMPORTED_API_KEY" ? fixture.importRaw("a raw key", change) : fixture.issue(change);
      const ofToken = kind === "JWT" ? fixture.jwt(keyId, NOW + HOUR) : fixture.macaroon(keyId, NOW + HOUR);
      const presented = kind === "JWT" || kind === "MACAROON" ? ofToken : credential;
      for (let again = 0; again < 4; again++) {
        const verdict = await verify(fixture.context, presented);
        if (!verdict.valid) expect.unreachable();
        kept += verdict.answers?.answer("JSON") === undefined ? 0 : 1;
        expect(answersTo(verdict)).toEqual(answersTo(fieldsOf(verdict) as Valid));
      }
    }),
    { numRuns: 200 },
  );
  expect(kept).toBe(400);
});

test("an answer is kept once for a credential that a batch repeats, which stays cached", async () => {
  const fixture = newFixture();
  const { credential } = fixture.issue({});
  await verify(fixture.context, credential);
  const bytes = [];
  for (let again = 0; again < 3; again++) {
    const verdicts = await verifyAll(
      fixture.context,
      Array.from({ length: 1_000 }, () => ({ credential, requiredScopes: [] })),
    );
    for (const verdict of verdicts) if (verdict.valid) answersTo(verdict);
    bytes.push(fixture.cache.stats().bytes);
  }
  expect(bytes).toEqual([bytes[0], bytes[0], bytes[0]]);
  expect(fixture.store.statements.length).toBe(1);
});

test("an answer that is too large leaves its credential cached", async () => {
  const fixture = newFixture();
  const { credential } = fixture.issue({});
  await verify(fixture.context, credential);
  for (let again = 0; again < 2; again++) {
    const verdict = await verify(fixture.context, credential);
    if (!verdict.valid) expect.unreachable();
    expect(verdict.answers?.answer("JSON")).toBeUndefined();
    verdict.answers?.keep("JSON", Buffer.alloc(2 ** 19));
  }
  expect(fixture.store.statements.length).toBe(1);
});
