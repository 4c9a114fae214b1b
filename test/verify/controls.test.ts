import { describe, expect, test } from "vitest";
import type { Verdict } from "../../src/domain/verdict.ts";
import type { Presentation } from "../../src/verify/context.ts";
import { type Explanation, explain } from "../../src/verify/explain.ts";
import { verify, verifyAll } from "../../src/verify/verify.ts";
import { fieldsOf, HOUR, NOW, newFixture } from "./fixture.ts";

/** What can be wrong with a credential in force, in the order of the checks, with the reason and the name of the check that fails. */
const FAULTS = [
  ["revoked", "KEY_REVOKED", "REVOCATION"],
  ["expired", "EXPIRED", "EXPIRY"],
  ["token expired", "EXPIRED", "EXPIRY"],
  ["disabled", "DISABLED", "DISABLED"],
  ["address", "IP_NOT_ALLOWED", "ADDRESS"],
  ["audience", "AUDIENCE_MISMATCH", "AUDIENCE"],
  ["scopes", "INSUFFICIENT_SCOPE", "SCOPES"],
] as const;

type Fault = (typeof FAULTS)[number][0];

const TYPES = ["ISSUED_API_KEY", "IMPORTED_API_KEY", "JWT", "MACAROON"] as const;

/** Every set of faults that a credential of this type can have. The secret of a key has no audience, and no expiry of its own. */
function faultsOf(type: (typeof TYPES)[number]): (readonly Fault[])[] {
  const possible = FAULTS.map(([fault]) => fault).filter((fault) => !/audience|token/.test(fault) || !/KEY/.test(type));
  return Array.from({ length: 2 ** possible.length }, (_, set) => possible.filter((_, place) => (set >> place) & 1));
}

/** A credential of a key that is restricted to an address, with these faults, and what it is presented for. */
function subject(type: (typeof TYPES)[number], faults: readonly Fault[]) {
  const has = (fault: Fault) => faults.includes(fault);
  const fixture = newFixture();
  const change = {
    allowedCidrs: ["203.0.113.0/24"],
    revokeTime: has("revoked") ? new Date(NOW) : null,
    expireTime: has("expired") ? new Date(NOW - 1) : new Date(NOW + HOUR),
    disableTime: has("disabled") ? new Date(NOW) : null,
  };
  const { keyId, credential } =
    type === "IMPORTED_API_KEY" ? fixture.importRaw("a raw key of another service", change) : fixture.issue(change);
  const token = { JWT: fixture.jwt, MACAROON: fixture.macaroon, ISSUED_API_KEY: null, IMPORTED_API_KEY: null }[type];
  const presentation: Presentation = {
    clientIp: has("address") ? "198.51.100.1" : "203.0.113.7",
    requiredScopes: has("scopes") ? ["read", "admin"] : ["read"],
    audience: has("audience") ? "billing" : undefined,
  };
  return {
    fixture,
    keyId,
    credential: token?.(keyId, has("token expired") ? NOW : NOW + HOUR) ?? credential,
    presentation,
  };
}

function outcome(verdict: Verdict): string {
  return verdict.valid ? "VALID" : verdict.reason;
}

/** Returns the names of the checks with a result. */
function named(explanation: Explanation | null, result: string): string[] {
  return explanation?.checks.filter((check) => check.result === result).map(({ name }) => name) ?? [];
}

describe.each(TYPES)("%s", (type) => {
  test("is rejected for the first of its faults, cached or not, alone and in a batch, and all of them are explained", async () => {
    for (const faults of faultsOf(type)) {
      const { fixture, credential, presentation } = subject(type, faults);
      const expected = FAULTS.find(([fault]) => faults.includes(fault))?.[1] ?? "VALID";
      for (let again = 0; again < 3; again++) {
        const verdict = await verify(fixture.context, credential, "default", presentation);
        expect([faults, outcome(verdict)]).toEqual([faults, expected]);
      }
      const batch = await verifyAll(fixture.context, [{ credential, ...presentation }]);
      expect(batch.map(outcome)).toEqual([expected]);
      const used = fixture.used.length;
      expect(used).toBe(expected === "VALID" ? 2 : 0);

      const explanation = await explain(fixture.context, { credential }, presentation);
      expect(outcome(explanation?.verdict ?? batch[0] ?? expect.fail())).toBe(expected);
      expect(explanation?.verdict).toEqual(batch.map(fieldsOf)[0]);
      const failures = [...new Set(FAULTS.filter(([fault]) => faults.includes(fault)).map(([, , check]) => check))];
      expect(named(explanation, "FAIL")).toEqual(failures);
      expect(named(explanation, "PASS").length + failures.length).toBeGreaterThan(6);
      expect(fixture.used.length).toBe(used);
    }
  });

  test("is rejected without an address, whatever the request says instead", async () => {
    for (const clientIp of [undefined, "", "localhost", "203.0.113.7, 10.0.0.1", "203.0.113.7:80", "203.0.113.0/24"]) {
      const { fixture, credential } = subject(type, []);
      const verdict = await verify(fixture.context, credential, "default", { clientIp, requiredScopes: [] });
      expect([clientIp, outcome(verdict)]).toEqual([clientIp, "IP_NOT_ALLOWED"]);
    }
  });
});

test("the address of a client is not determined for a key without allowed_cidrs", async () => {
  const fixture = newFixture();
  const presentation = {
    requiredScopes: [],
    get clientIp(): string {
      throw new Error("the address was read");
    },
  };
  const { credential } = fixture.issue({ allowedCidrs: null });
  expect(outcome(await verify(fixture.context, credential, "default", presentation))).toBe("VALID");
  const restricted = fixture.issue({ allowedCidrs: ["203.0.113.0/24"] });
  const verdict = async () => verify(fixture.context, restricted.credential, "default", presentation);
  await expect(verdict()).rejects.toThrow("the address was read");
});

test("the missing scopes are named once each, with the credential", async () => {
  const { fixture, credential, keyId } = subject("ISSUED_API_KEY", []);
  const requiredScopes = ["admin", "read", "admin", "owner"];
  const verdict = await verify(fixture.context, credential, "default", { clientIp: "203.0.113.7", requiredScopes });
  expect(verdict).toMatchObject({
    reason: "INSUFFICIENT_SCOPE",
    missingScopes: ["admin", "owner"],
    credential: { valid: true, key: { keyId }, scopes: ["read", "write"] },
  });
});

test("a key is explained by its id as its current secret would be", async () => {
  for (const faults of faultsOf("ISSUED_API_KEY")) {
    const { fixture, credential, keyId, presentation } = subject("ISSUED_API_KEY", faults);
    const [byId, bySecret] = [
      await explain(fixture.context, { keyId }, presentation),
      await explain(fixture.context, { credential }, presentation),
    ];
    expect(byId?.verdict).toEqual(bySecret?.verdict);
    expect(byId?.checks.slice(2)).toEqual(bySecret?.checks.slice(2));
    expect(named(byId, "SKIPPED").slice(0, 2)).toEqual(["FORMAT", "SIGNATURE"]);
  }
  expect(await explain(newFixture().context, { keyId: crypto.randomUUID() }, { requiredScopes: [] })).toBeNull();
});

test("an explanation contains no digest, and leaves the cache as it is", async () => {
  const { fixture, credential, presentation } = subject("ISSUED_API_KEY", []);
  const explanation = JSON.stringify(await explain(fixture.context, { credential }, presentation));
  for (const { secrets } of fixture.store.records.values()) {
    for (const { digest } of secrets) expect(explanation).not.toContain(Buffer.from(digest.digest).toString("hex"));
  }
  expect(explanation).not.toContain(credential.slice(-8));
  expect(fixture.cache.stats()).toMatchObject({ entries: 0, credentials: 0, hits: 0 });
});

describe("an explanation names what the key or the token allows", () => {
  const END = new Date(NOW + HOUR);
  const CIDRS = { allowedCidrs: ["10.0.0.0/8", "203.0.113.0/24"] };
  const READ = { clientIp: undefined, requiredScopes: [], audience: undefined };

  /** Returns the details of the checks of a key with these changes, or of a token of it. */
  async function detailsOf(change: object, presentation: Partial<Presentation>, audience?: readonly string[] | null) {
    const fixture = newFixture();
    const { keyId, credential: secret } = fixture.issue(change);
    const credential = audience === undefined ? secret : fixture.jwt(keyId, END.getTime(), audience ?? undefined);
    const explanation = await explain(fixture.context, { credential }, { ...READ, ...presentation });
    return Object.fromEntries(
      explanation?.checks.map(({ name, result, detail }) => [name, `${result} ${detail}`]) ?? [],
    );
  }

  type Case = readonly [
    check: string,
    expected: string,
    change: object,
    Partial<Presentation>,
    (readonly string[] | null)?,
  ];
  const cases: readonly Case[] = [
    ["EXPIRY", "PASS the key does not expire", {}, {}],
    ["EXPIRY", `PASS the credential expires at ${END.toISOString()}`, { expireTime: END }, {}],
    ["EXPIRY", `FAIL the credential expired at ${new Date(NOW).toISOString()}`, { expireTime: new Date(NOW) }, {}],
    ["DISABLED", "PASS the key is not disabled", {}, {}],
    ["DISABLED", `FAIL the key has been disabled since ${END.toISOString()}`, { disableTime: END }, {}],
    ["ADDRESS", "SKIPPED the key is not restricted to specific IP addresses", {}, { clientIp: "203.0.113.7" }],
    ["ADDRESS", "PASS client_ip is in 10.0.0.0/8, 203.0.113.0/24", CIDRS, { clientIp: "203.0.113.7" }],
    ["ADDRESS", "FAIL client_ip is not in 10.0.0.0/8, 203.0.113.0/24", CIDRS, { clientIp: "192.0.2.1" }],
    ["ADDRESS", "FAIL client_ip is not set; allowed: 10.0.0.0/8, 203.0.113.0/24", CIDRS, {}],
    ["AUDIENCE", "SKIPPED the secret of a key has no audience", {}, { audience: "a" }],
    ["AUDIENCE", "SKIPPED neither the token nor the request has an audience", {}, {}, null],
    ["AUDIENCE", "PASS the token is for a", {}, { audience: "a" }, ["a", "b"]],
    ["AUDIENCE", "FAIL the token is for a, b; the request names c", {}, { audience: "c" }, ["a", "b"]],
    ["AUDIENCE", "FAIL the token is for a; the request names none", {}, {}, ["a"]],
    ["AUDIENCE", "FAIL the token is for no audience; the request names a", {}, { audience: "a" }, null],
    ["SCOPES", "SKIPPED no scopes are required", {}, {}],
    ["SCOPES", "PASS the credential has read", {}, { requiredScopes: ["read"] }],
    ["SCOPES", "FAIL the credential lacks x, y", {}, { requiredScopes: ["x", "read", "y"] }],
  ];

  test.for(cases)("%s: %s", async ([check, expected, change, presentation, audience]) => {
    expect((await detailsOf(change, presentation, audience))[check]).toBe(expected);
  });
});
