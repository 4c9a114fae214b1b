import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rootSecretId } from "../../src/server/root-secrets/rings.ts";
import { derive, revoke, succeeded, useService } from "../support/conformance.ts";
import { runKeyhold } from "../support/keyhold.ts";
import { issue, type Json, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { ROOT_SECRET, startTestServer, type TestServer } from "../support/server.ts";

const ES256 = { KEYHOLD_SIGNING_ALGORITHM: "ES256" };
const NEW_ROOT = "another-root-secret-0123456789-abcdefghijklm";

const suite = useService(ES256);
const { rest } = suite;

/** Another server on the same database, with another setting. */
let other: TestServer;
beforeAll(async () => {
  other = await startTestServer({
    KEYHOLD_DATABASE_URL: suite.server.databaseUrl,
    KEYHOLD_SIGNING_ALGORITHM: "EdDSA",
  });
});
afterAll(() => other?.close());

/** Both servers. */
const clients = (): RestClient[] => [rest, restClient(other)];

const algorithmOf = (token: string) => decodeProtectedHeader(token).alg;

async function published(client: RestClient): Promise<Json[]> {
  return succeeded(await client("GET", paths.jwks)).keys;
}

async function newJwt(client: RestClient = rest): Promise<string> {
  const { secret } = await issue(client, { scopes: ["read"] });
  return (await derive(client, secret)).token;
}

/** Runs a command on the database of the suite. */
function keyhold(environment: Readonly<Record<string, string>>, ...args: string[]) {
  const database = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  return runKeyhold(args, { ...database, ...environment });
}

async function listed(): Promise<[algorithm: string, state: string][]> {
  const { stdout } = await keyhold({}, "signing-keys", "list", "--json");
  return JSON.parse(stdout).map(({ algorithm, state }: Json) => [algorithm, state]);
}

/** The second signature that is valid for the same data: (r, n - s). */
function withOtherS(token: string): string {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const at = token.lastIndexOf(".") + 1;
  const signature = Buffer.from(token.slice(at), "base64url");
  const s = order - BigInt(`0x${signature.subarray(32).toString("hex")}`);
  return token.slice(0, at) + Buffer.concat([signature.subarray(0, 32), toBytes(s)]).toString("base64url");
}

function toBytes(number: bigint): Buffer {
  return Buffer.from(number.toString(16).padStart(64, "0"), "hex");
}

// These tests run in order.
describe("a first key for ES256", () => {
  test("is published as a P-256 key, the same in every protocol and on every server", async () => {
    const coordinate = expect.stringMatching(/^[\w-]{43}$/);
    const [key, ...more] = await published(rest);
    expect(more).toEqual([]);
    expect(key).toEqual({
      ...{ kty: "EC", crv: "P-256", x: coordinate, y: coordinate },
      ...{ kid: coordinate, use: "sig", alg: "ES256" },
    });
    const overConnect = await rest("POST", "/keyhold.v2alpha1.DerivedKeysService/GetJwks", {});
    expect(overConnect.body).toEqual({ keys: [key] });
    expect(await published(restClient(other))).toEqual([key]);
  });

  test("is reported in the log of a server with another setting only", () => {
    const message = "the algorithm of the active signing key differs from KEYHOLD_SIGNING_ALGORITHM";
    expect(suite.server.log()).not.toContain(message);
    const [line = "", ...more] = other
      .log()
      .split("\n")
      .filter((text) => text.includes(message));
    expect(more).toEqual([]);
    expect(JSON.parse(line)).toMatchObject({ level: 40, configured: "EdDSA", active: "ES256" });
  });

  test("signs JWTs that jose verifies by the JWKS", async () => {
    const { keyId, secret } = await issue(rest, { actor_id: "user_1", scopes: ["a", "b"] });
    for (const client of clients()) {
      const { token, token_id } = await derive(client, secret, { custom_claims: { tier: "gold" } });
      const jwks = createLocalJWKSet({ keys: (await published(client)) as [] });
      const { payload } = await jwtVerify(token, jwks, { issuer: "keyhold", algorithms: ["ES256"], typ: "JWT" });
      expect(payload).toMatchObject({ sub: "user_1", jti: token_id, scope: "a b", key_id: keyId, tier: "gold" });
    }
  });

  test("is kept by restarts, whatever the setting", async () => {
    const [key] = await published(rest);
    const token = await newJwt();
    for (const algorithm of ["EdDSA", "", "ES256"]) {
      await suite.server.restart({ KEYHOLD_SIGNING_ALGORITHM: algorithm });
      expect(await published(rest)).toEqual([key]);
      expect(await verify(rest, token)).toMatchObject({ is_valid: true, credential_type: "CREDENTIAL_TYPE_JWT" });
      expect(algorithmOf(await newJwt())).toBe("ES256");
    }
  });

  test("a token has no authority after its key is revoked, in either form of its signature", async () => {
    const { secret, keyId } = await issue(rest, { scopes: ["read"] });
    const { token } = await derive(rest, secret);
    const forms = [token, withOtherS(token)];
    for (const client of clients())
      for (const form of [...forms, ...forms])
        expect(await verify(client, form)).toMatchObject({ is_valid: true, key_id: keyId, scopes: ["read"] });
    await revoke(rest, keyId);
    for (const client of clients())
      for (const form of forms)
        expect(await verify(client, form)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
  });

  test("a damaged or re-encoded signature is rejected, also beside cached good ones", async () => {
    const token = await newJwt();
    const at = token.lastIndexOf(".") + 1;
    const signature = Buffer.from(token.slice(at), "base64url");
    const exchanged = Buffer.concat([signature.subarray(32), signature.subarray(0, 32)]);
    expect(await verify(rest, token)).toMatchObject({ is_valid: true });
    for (const bytes of [exchanged, Buffer.alloc(64), Buffer.concat([Buffer.alloc(32), signature.subarray(32)])]) {
      const forged = token.slice(0, at) + bytes.toString("base64url");
      expect(await verify(rest, forged)).toMatchObject({ error_code: "VERIFICATION_ERROR_SIGNATURE_INVALID" });
    }
    const header = Buffer.from(JSON.stringify({ ...decodeProtectedHeader(token), alg: "EdDSA" })).toString("base64url");
    const relabelled = [header, ...token.split(".").slice(1)].join(".");
    expect(await verify(rest, relabelled)).toMatchObject({ error_code: "VERIFICATION_ERROR_SIGNATURE_INVALID" });
  });
});

describe("a change of the algorithm while two servers verify", () => {
  test("reaches both without a restart, and no token is rejected before it expires", { timeout: 60_000 }, async () => {
    const tokens = [await newJwt()];
    const failures: unknown[] = [];
    let verified = 0;
    const ending = new AbortController();
    const load = clients().map(async (client) => {
      while (!ending.signal.aborted) {
        for (const token of tokens) {
          const verdict = await verify(client, token);
          if (verdict.is_valid === true) verified++;
          else failures.push(verdict);
        }
      }
    });
    for (const algorithm of ["EdDSA", "ES256", "EdDSA", "ES256"]) {
      const { code, stdout, stderr } = await keyhold({}, "signing-keys", "rotate", "--json", "--algorithm", algorithm);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const { kid, ...made } = JSON.parse(stdout);
      expect(made).toEqual({ algorithm });
      for (const client of clients()) {
        const token = await newJwt(client);
        expect(decodeProtectedHeader(token)).toEqual({ alg: algorithm, typ: "JWT", kid });
        tokens.push(token);
        expect((await published(client))[0]).toMatchObject({ alg: algorithm, kid });
      }
    }
    const before = verified;
    await expect.poll(() => verified, { timeout: 30_000 }).toBeGreaterThan(before + 4 * tokens.length);
    ending.abort();
    await Promise.all(load);
    expect(failures).toEqual([]);
    expect((await published(rest)).map(({ alg }) => alg)).toEqual(["ES256", "EdDSA", "ES256", "EdDSA", "ES256"]);
    const jwks = createLocalJWKSet({ keys: (await published(rest)) as [] });
    for (const token of tokens) await jwtVerify(token, jwks, { issuer: "keyhold", algorithms: ["EdDSA", "ES256"] });
  });

  test("the command without a setting keeps the algorithm, and with a setting uses it", async () => {
    const rotated = async (environment: Record<string, string>) => {
      const { stdout } = await keyhold(environment, "signing-keys", "rotate", "--json");
      return JSON.parse(stdout).algorithm;
    };
    expect(await rotated({})).toBe("ES256");
    expect(await rotated({ KEYHOLD_SIGNING_ALGORITHM: "EdDSA" })).toBe("EdDSA");
    expect(await rotated({})).toBe("EdDSA");
    expect(await rotated(ES256)).toBe("ES256");
    expect((await listed())[0]).toEqual(["ES256", "active"]);
  });

  test.each([["--algorithm", "RS256"], ["--algorithm", "es256"], ["--algorithm"]])(
    "%s %s is refused",
    async (...options) => {
      expect(await keyhold({}, "signing-keys", "rotate", ...options)).toMatchObject({ code: 2, stdout: "" });
    },
  );

  test("is refused while a server of an earlier release runs", async () => {
    await keyhold({}, "signing-keys", "rotate", "--algorithm", "EdDSA");
    const before = await listed();
    // As release 0.2 takes a lease.
    await suite.sql`
      INSERT INTO nodes (lease_id, name, version, ttl_ms) VALUES (gen_random_uuid(), 'old-node:1', '0.2.0', 600000)`;
    try {
      const { code, stderr } = await keyhold({}, "signing-keys", "rotate", "--algorithm", "ES256");
      expect(code).toBe(2);
      expect(stderr).toContain("servers of an earlier release do not support ES256: upgrade old-node:1 first");
      expect(await listed()).toEqual(before);
    } finally {
      await suite.sql`DELETE FROM nodes WHERE name = 'old-node:1'`;
    }
    await suite.sql`
      INSERT INTO nodes (lease_id, name, version, ttl_ms, renew_time)
      VALUES (gen_random_uuid(), 'crashed:1', '0.2.0', 1, now() - interval '1 second')`;
    expect(await keyhold({}, "signing-keys", "rotate", "--algorithm", "ES256")).toMatchObject({ code: 0 });
  });
});

describe("a rotation of the root secret", () => {
  test("keeps keys of both algorithms usable", async () => {
    const es256 = await newJwt();
    await keyhold({}, "signing-keys", "rotate", "--algorithm", "EdDSA");
    const eddsa = await newJwt();
    const keys = await published(rest);
    const staged = { KEYHOLD_ROOT_SECRET: NEW_ROOT, KEYHOLD_ROOT_SECRETS_RETIRED: ROOT_SECRET };
    for (const one of [suite.server, other]) await one.restart(staged);
    const { code, stdout } = await keyhold(staged, "secrets", "promote", rootSecretId(NEW_ROOT), "--json");
    // The key of the audit log counts as a signing key.
    const signing_keys = (await listed()).length + 1;
    expect({ code, signing_keys: JSON.parse(stdout).signing_keys }).toEqual({ code: 0, signing_keys });
    for (const token of [es256, eddsa]) expect(await verify(rest, token)).toMatchObject({ is_valid: true });
    for (const one of [suite.server, other]) await one.restart({ KEYHOLD_ROOT_SECRET: NEW_ROOT });
    for (const client of clients()) expect(await published(client)).toEqual(keys);
    const environment = { KEYHOLD_ROOT_SECRET: NEW_ROOT };
    for (const algorithm of ["ES256", "EdDSA"]) {
      await keyhold(environment, "signing-keys", "rotate", "--algorithm", algorithm);
      expect(await verify(restClient(other), await newJwt())).toMatchObject({ is_valid: true });
    }
  });
});
