import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Fetch } from "../../../src/token/oidc/issuer-keys.ts";
import { createOidcVerifier, type OidcOptions } from "../../../src/token/oidc/verifier.ts";
import { type OidcIssuer, startOidcIssuer } from "../../support/oidc-issuer.ts";

const started = Date.now();
const seconds = Math.floor(started / 1000);
let time = started;
const clock = { now: () => time };
let oidc: OidcIssuer;

beforeAll(async () => {
  oidc = await startOidcIssuer();
});
afterAll(() => oidc.close());
afterEach(() => {
  time = started;
});

function verifier(options: Partial<OidcOptions> = {}) {
  return createOidcVerifier({ issuer: oidc.issuer, audience: oidc.audience, clock, ...options });
}

/** A real fetch that records the requested paths. */
function countingFetch(): { fetch: Fetch; paths: string[] } {
  const paths: string[] = [];
  const counting: Fetch = (url, init) => {
    paths.push(new URL(String(url)).pathname);
    return fetch(url, init);
  };
  return { fetch: counting, paths };
}

/** A response that replaces the issuer's own. */
function answering(answer: (path: string) => Response | undefined): Fetch {
  return async (url, init) => answer(new URL(String(url)).pathname) ?? fetch(url, init);
}

const METADATA = "/.well-known/openid-configuration";
const KEYS = "/jwks";
const invalid = (message: string) => ({ ok: false, reason: "INVALID", message });
const unavailable = { ok: false, reason: "ISSUER_UNAVAILABLE" };

describe("an access token of the issuer", () => {
  test("returns the subject and the scopes", async () => {
    const token = await oidc.token(["keyhold:verify", "keyhold:keys.read"]);
    const verdict = await verifier().verify(token);
    const scopes = ["keyhold:verify", "keyhold:keys.read"];
    expect(verdict).toEqual({ ok: true, subject: "operator", scopes, actorIds: null, expireTime: expect.any(Date) });
  });

  test("returns the scopes of the configured claim", async () => {
    const token = await oidc.token(["keyhold:admin"]);
    const scopes = async (scopeClaim: string) => verifier({ scopeClaim }).verify(token);
    expect(await scopes("realm_access.roles")).toMatchObject({ ok: true, scopes: ["keyhold:admin"] });
    expect(await scopes("roles")).toMatchObject({ ok: true, scopes: [] });
  });

  test("accepts one of several audiences", async () => {
    const claims = { iss: oidc.issuer, sub: "user", aud: ["other", oidc.audience], exp: seconds + 60 };
    expect(await verifier().verify(await oidc.sign(claims))).toEqual({
      ok: true,
      subject: "user",
      scopes: [],
      actorIds: null,
      expireTime: new Date((seconds + 60) * 1000),
    });
  });

  test("expires, with tolerance for clock skew", async () => {
    const token = await oidc.sign({ iss: oidc.issuer, sub: "user", aud: oidc.audience, exp: seconds + 60 });
    const at = (elapsed: number) => {
      time = (seconds + elapsed) * 1000;
      return verifier().verify(token);
    };
    expect(await at(59)).toMatchObject({ ok: true });
    expect(await at(64)).toMatchObject({ ok: true });
    expect(await at(65)).toEqual({ ok: false, reason: "EXPIRED", message: "the access token has expired" });
  });

  test.each([
    ["of another audience", { aud: "https://other.test" }, "aud"],
    ["without audience", { aud: undefined }, "aud"],
    ["of another issuer", { iss: "https://other.test" }, "iss"],
    ["without issuer", { iss: undefined }, "iss"],
    ["without expiry", { exp: undefined }, "exp"],
    ["without subject", { sub: undefined }, "sub"],
    ["with an empty subject", { sub: "" }, "sub"],
    ["with NUL in the subject", { sub: "a\0b" }, "sub"],
    ["with half a surrogate pair in the subject", { sub: "a\ud800" }, "sub"],
    ["that expires after the year 9999", { exp: 253_402_300_800 }, "exp"],
    ["that expires at the largest number", { exp: Number.MAX_VALUE }, "exp"],
    ["not valid yet", { nbf: seconds + 600 }, "nbf"],
  ])("%s is refused", async (_, change, claim) => {
    const good = { iss: oidc.issuer, sub: "user", aud: oidc.audience, exp: seconds + 60, scope: "keyhold:admin" };
    const token = await oidc.sign({ ...good, ...change });
    expect(await verifier().verify(token)).toEqual(invalid(`the claim ${claim} of the access token is not valid`));
  });

  test("may expire with the year 9999", async () => {
    const exp = 253_402_300_799;
    const token = await oidc.sign({ iss: oidc.issuer, sub: "user", aud: oidc.audience, exp });
    expect(await verifier().verify(token)).toMatchObject({ ok: true, expireTime: new Date(exp * 1000) });
  });
});

describe("a forged access token", () => {
  const claims = () => ({ iss: oidc.issuer, sub: "user", aud: oidc.audience, exp: seconds + 60 });
  const refused = invalid("the access token is not valid");

  test("of an unpublished key is rejected", async () => {
    const { privateKey } = await generateKeyPair("ES256");
    const sign = (kid: string) => new SignJWT(claims()).setProtectedHeader({ alg: "ES256", kid }).sign(privateKey);
    expect(await verifier().verify(await sign("key-1"))).toEqual(refused);
    expect(await verifier().verify(await sign("key-0"))).toEqual(refused);
  });

  test("with a shared secret, no signature, or malformed is rejected without a fetch", async () => {
    const { fetch, paths } = countingFetch();
    const { verify } = verifier({ fetch });
    const hs256 = new SignJWT(claims()).setProtectedHeader({ alg: "HS256", kid: "key-1" });
    const [, payload] = (await oidc.token(["keyhold:admin"])).split(".");
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.`;
    for (const token of [await hs256.sign(Buffer.alloc(32)), none, "", "kh_v1_abc", "a.b.c"]) {
      expect(await verify(token)).toEqual(refused);
    }
    expect(paths).toEqual([]);
  });

  test("with another payload is rejected", async () => {
    const [header, , signature] = (await oidc.token(["keyhold:verify"])).split(".");
    const payload = Buffer.from(JSON.stringify({ ...claims(), scope: "keyhold:admin" })).toString("base64url");
    expect(await verifier().verify(`${header}.${payload}.${signature}`)).toEqual(refused);
  });
});

describe("the issuer's keys are read", () => {
  test("once for concurrent tokens", async () => {
    const { fetch, paths } = countingFetch();
    const { verify } = verifier({ fetch });
    const token = await oidc.token(["keyhold:verify"]);
    expect(paths).toEqual([]);
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => verify(token)));
    expect(verdicts.every(({ ok }) => ok)).toBe(true);
    await verify(token);
    expect(paths).toEqual([METADATA, KEYS]);
  });

  test("again for an unknown key, but not within the cooldown", async () => {
    const rotating = await startOidcIssuer();
    try {
      const { fetch, paths } = countingFetch();
      const { issuer } = rotating;
      const eager = verifier({ issuer, fetch, keysCooldown: 0 });
      const patient = verifier({ issuer });
      const old = await rotating.token(["keyhold:verify"]);
      expect([await eager.verify(old), await patient.verify(old)]).toMatchObject([{ ok: true }, { ok: true }]);
      await rotating.rotateKeys();
      const next = await rotating.token(["keyhold:verify"]);
      expect(await eager.verify(next)).toMatchObject({ ok: true });
      expect(await patient.verify(next)).toMatchObject({ ok: false, reason: "INVALID" });
      expect(await eager.verify(old)).toMatchObject({ ok: false, reason: "INVALID" });
      expect(paths).toEqual([METADATA, KEYS, KEYS, KEYS]);
    } finally {
      await rotating.close();
    }
  });
});

describe("an unreachable issuer", () => {
  test("is distinguished from an invalid token, and retried only after a pause", async () => {
    const first = await startOidcIssuer();
    const { issuer } = first;
    const token = await first.token(["keyhold:verify"]);
    await first.close();
    const { fetch, paths } = countingFetch();
    const { verify } = verifier({ issuer, fetch });
    expect(await verify(token)).toMatchObject(unavailable);
    const second = await startOidcIssuer({ port: Number(new URL(issuer).port) });
    try {
      const later = await second.token(["keyhold:verify"]);
      time = started + 4_999;
      expect(await verify(later)).toMatchObject(unavailable);
      expect(paths).toEqual([METADATA]);
      time = started + 5_000;
      expect(await verify(later)).toMatchObject({ ok: true });
      expect(paths).toEqual([METADATA, METADATA, KEYS]);
    } finally {
      await second.close();
    }
  });

  test("does not evict known keys", async () => {
    const closing = await startOidcIssuer();
    const { verify } = verifier({ issuer: closing.issuer, keysCooldown: 0 });
    const token = await closing.token(["keyhold:verify"]);
    await closing.rotateKeys();
    const next = await closing.token(["keyhold:verify"]);
    expect(await verify(next)).toMatchObject({ ok: true });
    await closing.close();
    expect(await verify(token)).toMatchObject(unavailable);
    expect(await verify(next)).toMatchObject({ ok: true });
  });

  test("delays a token by at most the timeout", async () => {
    const silent: Fetch = (_, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
    const token = await oidc.token(["keyhold:verify"]);
    const verdict = await verifier({ fetch: silent, timeout: 5 }).verify(token);
    expect(verdict).toMatchObject({ ...unavailable, cause: { cause: { name: "TimeoutError" } } });
  });

  const metadata = (change: object, status = 200) =>
    Response.json({ issuer: oidc.issuer, jwks_uri: `${oidc.issuer}${KEYS}`, ...change }, { status });

  test.each<[string, string, () => Response]>([
    ["answers 500", METADATA, () => metadata({}, 500)],
    ["redirects", METADATA, () => Response.redirect("https://other.test/")],
    ["answers invalid JSON", METADATA, () => new Response("<html>")],
    ["answers null", METADATA, () => Response.json(null)],
    ["has another identifier", METADATA, () => metadata({ issuer: "https://other.test" })],
    ["has a slash that the configuration lacks", METADATA, () => metadata({ issuer: `${oidc.issuer}/` })],
    ["names no keys", METADATA, () => metadata({ jwks_uri: undefined })],
    ["names a malformed URL of its keys", METADATA, () => metadata({ jwks_uri: "jwks" })],
    ["answers 404 for its keys", KEYS, () => new Response("", { status: 404 })],
    ["answers invalid JSON for its keys", KEYS, () => new Response("<html>")],
    ["answers no key set", KEYS, () => Response.json([])],
    ["answers a key set without valid keys", KEYS, () => Response.json({ keys: ["key"] })],
  ])("%s, and is not retried at once", async (_, at, answer) => {
    let asked = 0;
    const counted = () => {
      asked += 1;
      return answer();
    };
    const { verify } = verifier({ fetch: answering((path) => (path === at ? counted() : undefined)) });
    const token = await oidc.token(["keyhold:verify"]);
    expect(await verify(token)).toMatchObject(unavailable);
    expect(await verify(token)).toMatchObject(unavailable);
    expect(asked).toBe(1);
  });

  test("publishes a private key by mistake", async () => {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    const jwk = { ...(await exportJWK(privateKey)), kid: "key-1", alg: "ES256" };
    const { verify } = verifier({
      fetch: answering((path) => (path === KEYS ? Response.json({ keys: [jwk] }) : undefined)),
    });
    expect(await verify(await oidc.token(["keyhold:verify"]))).toMatchObject(unavailable);
  });

  test("has no key for the token: the token is rejected", async () => {
    const { verify } = verifier({
      fetch: answering((path) => (path === KEYS ? Response.json({ keys: [] }) : undefined)),
    });
    expect(await verify(await oidc.token(["keyhold:verify"]))).toEqual(invalid("the access token is not valid"));
  });

  test.each(["https://issuer.test", "http://127.0.0.1"])(
    "fails if it refers from %s to http elsewhere",
    async (issuer) => {
      const paths: string[] = [];
      const fetch: Fetch = async (url) => {
        paths.push(String(url));
        return Response.json({ issuer, jwks_uri: "http://issuer.test/jwks" });
      };
      expect(await verifier({ issuer, fetch }).verify(await oidc.token(["a"]))).toMatchObject(unavailable);
      expect(paths).toEqual([`${issuer}${METADATA}`]);
    },
  );
});

test("reads the metadata of an issuer with a path or trailing slash (Discovery)", async () => {
  const paths: string[] = [];
  const fetch: Fetch = async (url) => {
    paths.push(String(url));
    return new Response("", { status: 404 });
  };
  const token = await oidc.token(["a"]);
  for (const issuer of ["https://a.test", "https://a.test/", "https://a.test/realms/b", "https://a.test/realms/b/"]) {
    await verifier({ issuer, fetch }).verify(token);
  }
  const [host, realm] = [`https://a.test${METADATA}`, `https://a.test/realms/b${METADATA}`];
  expect(paths).toEqual([host, host, realm, realm]);
});

test.each(["", "issuer", "ftp://a.test", "https://a.test?b", "https://a.test/#c"])(
  "rejects the issuer %j",
  (issuer) => {
    expect(() => verifier({ issuer })).toThrow(/^issuer: /);
  },
);

test("rethrows other errors", async () => {
  const broken = { now: () => Number.NaN };
  await expect(verifier({ clock: broken }).verify(await oidc.token(["a"]))).rejects.toThrow(TypeError);
});
