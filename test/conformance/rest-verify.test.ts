import { describe, expect, test } from "vitest";
import {
  derive,
  expectRefused,
  importKey,
  invalid,
  newRawKey,
  RFC_3339_UTC,
  revoke,
  succeeded,
  table,
  useService,
} from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService({ KEYHOLD_ISSUER: "https://keys.example" });
const { rest } = suite;
const text = expect.stringMatching(/./);

const verifyPath = `${paths.keys}:verify`;
const batchPath = `${paths.keys}:batchVerify`;

const refused = (code: string) => ({
  is_valid: false,
  scopes: [],
  metadata: {},
  error_code: `VERIFICATION_ERROR_${code}`,
  error_message: text,
  missing_scopes: [],
  limits: [],
});

/** The credential with its second to last character changed; the last one of a JWT may have unused bits. */
const damaged = (credential: string) => {
  const at = credential.length - 2;
  return credential.slice(0, at) + (credential[at] === "A" ? "B" : "A") + credential.slice(at + 1);
};

describe("a valid credential", () => {
  const TOKENS = [
    ["TOKEN_ALGORITHM_JWT", "CREDENTIAL_TYPE_JWT"],
    ["TOKEN_ALGORITHM_MACAROON", "CREDENTIAL_TYPE_MACAROON"],
  ] as const;

  test.each(table(TOKENS))("that is a token of %s is %s and returns its key", async (algorithm, credential_type) => {
    const { keyId, secret } = await issue(rest, { scopes: ["a", "b"], metadata: { k: "v" } });
    const token = await derive(rest, secret, { algorithm, scopes: ["b"] });
    expect(await verify(rest, token.token)).toEqual({
      is_valid: true,
      key_id: keyId,
      actor_id: "actor_1",
      scopes: ["b"],
      metadata: { k: "v" },
      status: "KEY_STATUS_ACTIVE",
      expire_time: expect.stringMatching(RFC_3339_UTC),
      issuer: "https://keys.example",
      credential_type,
      missing_scopes: [],
      limits: [],
      claims: {},
    });
  });

  test("verifies repeatedly, and its last use appears in time", async () => {
    const { keyId, secret, record } = await issue(rest);
    expect(record.last_used_time).toBeUndefined();
    for (let i = 0; i < 3; i++) expect(await verify(rest, secret)).toMatchObject({ is_valid: true });
    await suite.server.restart();
    const { last_used_time } = succeeded(await rest("GET", `${paths.issued}/${keyId}`));
    expect(last_used_time).toMatch(/:00Z$/);
  });
});

describe("an invalid credential is 200 and returns only the reason:", () => {
  const CASES: readonly (readonly [what: string, code: string, make: () => Promise<string>])[] = [
    ["an unknown raw key", "NOT_FOUND", async () => newRawKey()],
    ["the secret of a missing key", "NOT_FOUND", secretOfNoKey],
    ["a mistyped secret", "INVALID_FORMAT", async () => damaged((await issue(rest)).secret)],
    ["half a secret", "INVALID_FORMAT", async () => (await issue(rest)).secret.slice(0, 50)],
    ["the prefix of a secret", "INVALID_FORMAT", async () => "kh_v1_"],
    ["a damaged JWT", "SIGNATURE_INVALID", async () => damaged(await token("JWT"))],
    ["a JWT with changed claims", "SIGNATURE_INVALID", otherClaims],
    ["a JWT with alg none", "INVALID_FORMAT", unsigned],
    ["a damaged macaroon", "SIGNATURE_INVALID", async () => damaged(await token("MACAROON"))],
  ];

  async function token(algorithm: string): Promise<string> {
    const { secret } = await issue(rest, { scopes: ["a"] });
    return (await derive(rest, secret, { algorithm: `TOKEN_ALGORITHM_${algorithm}` })).token;
  }

  async function secretOfNoKey() {
    const { secret, keyId } = await issue(rest);
    await suite.sql`DELETE FROM api_keys WHERE key_id = ${keyId}`;
    return secret;
  }

  async function otherClaims() {
    const [header, , signature] = (await token("JWT")).split(".");
    const [, payload] = (await token("JWT")).split(".");
    return [header, payload, signature].join(".");
  }

  async function unsigned() {
    const [, payload] = (await token("JWT")).split(".");
    return `${Buffer.from('{"alg":"none","typ":"JWT"}').toString("base64url")}.${payload}.`;
  }

  test.each(table(CASES))("%s is %s", async (_, code, make) => {
    const answer = await rest("POST", verifyPath, { credential: await make() });
    expect(succeeded(answer)).toEqual(refused(code));
  });

  test("the response does not contain the credential", async () => {
    const credential = newRawKey();
    expect((await rest("POST", verifyPath, { credential })).text).not.toContain(credential);
  });
});

describe("Cache-Control", () => {
  const DIRECTIVES = [
    "no-cache",
    "no-store",
    "No-Cache",
    "max-age=0, no-cache",
    "no-cache, no-store",
    "max-age=60",
    'x="a,b"',
  ];

  test.each(table(DIRECTIVES))("%s is accepted and returns the newest change", async (directive) => {
    const headers = { "cache-control": directive };
    const { keyId, secret } = await issue(rest);
    const single = () => rest("POST", verifyPath, { credential: secret }, headers);
    const both = () => rest("POST", batchPath, { requests: [{ credential: secret }] }, headers);
    expect(succeeded(await single()).is_valid).toBe(true);
    expect(succeeded(await both()).results).toMatchObject([{ is_valid: true }]);
    await revoke(rest, keyId);
    expect(succeeded(await single())).toEqual(refused("REVOKED"));
    expect(succeeded(await both()).results).toEqual([refused("REVOKED")]);
  });
});

describe("batchVerify", () => {
  const batch = (credentials: readonly Json[]) =>
    rest("POST", batchPath, { requests: credentials.map((credential) => ({ credential })) });

  test("evaluates credentials of every kind in order, each like verify", async () => {
    const { secret, keyId } = await issue(rest, { scopes: ["a"] });
    const { rawKey } = await importKey(rest);
    const jwt = (await derive(rest, secret)).token;
    const macaroon = (await derive(rest, rawKey, { algorithm: "TOKEN_ALGORITHM_MACAROON" })).token;
    const revoked = await issue(rest);
    await revoke(rest, revoked.keyId);
    const all = [jwt, secret, "nobody's", macaroon, revoked.secret, rawKey, secret, damaged(secret), jwt];
    const { results } = succeeded(await batch(all));
    expect(results).toEqual(await Promise.all(all.map((credential) => verify(rest, credential))));
    expect(results.map((result: Json) => result.credential_type ?? result.error_code)).toEqual([
      "CREDENTIAL_TYPE_JWT",
      "CREDENTIAL_TYPE_ISSUED_API_KEY",
      "VERIFICATION_ERROR_NOT_FOUND",
      "CREDENTIAL_TYPE_MACAROON",
      "VERIFICATION_ERROR_REVOKED",
      "CREDENTIAL_TYPE_IMPORTED_API_KEY",
      "CREDENTIAL_TYPE_ISSUED_API_KEY",
      "VERIFICATION_ERROR_INVALID_FORMAT",
      "CREDENTIAL_TYPE_JWT",
    ]);
    expect(results[0].key_id).toBe(keyId);
  });

  test("evaluates each credential independently of invalid ones", async () => {
    const { secret } = await issue(rest);
    const { results } = succeeded(await batch(["", secret, "c".repeat(8193), undefined, "a\0b", secret]));
    const bad = refused("INVALID_FORMAT");
    const good = expect.objectContaining({ is_valid: true });
    expect(results).toEqual([bad, good, bad, bad, bad, good]);
  });

  test("accepts 1000 credentials and answers in order", async () => {
    const { secret, keyId } = await issue(rest);
    const credentials = Array.from({ length: 1000 }, (_, index) => (index % 3 === 0 ? secret : `nobody-${index}`));
    const { results } = succeeded(await batch(credentials));
    const expected = credentials.map((credential) => (credential === secret ? keyId : undefined));
    expect(results.map((result: Json) => result.key_id)).toEqual(expected);
  });

  const SIZES = [
    ["1001 credentials", { requests: Array(1001).fill({ credential: "c" }) }],
    ["none", { requests: [] }],
    ["no list", {}],
  ] as const;

  test.each(table(SIZES))("is refused with %s", async (_, body) => {
    expectRefused(await rest("POST", batchPath, body), invalid("requests"));
  });

  test("names a misspelt field of an item", async () => {
    const answer = await rest("POST", batchPath, { requests: [{ credential: "c" }, { credentials: "c" }] });
    expectRefused(answer, invalid("requests[1].credentials"));
  });
});
