import { expect, test } from "vitest";
import { ApiKeysService, VerificationError } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  derive,
  expectRefused,
  expire,
  importKey,
  invalid,
  newRawKey,
  notFound,
  revoke,
  succeeded,
  table,
  UNKNOWN_KEY_ID,
  useService,
} from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;
const path = `${paths.keys}:explain`;

/** What a request explains. */
type Request = Readonly<Record<string, Json>>;

const key = (fields = {}) => issue(rest, { scopes: ["read"], ...fields });
const there = { ip_restriction: { allowed_cidrs: ["203.0.113.0/24"] } };

async function disabled(): Promise<Request> {
  const { secret, keyId } = await key();
  succeeded(await rest("POST", `${paths.keys}/${keyId}:disable`, { reason: "suspected leak" }));
  return { credential: secret };
}

async function revokedAndRestricted(): Promise<Request> {
  const { secret, keyId } = await key(there);
  await revoke(rest, keyId);
  return { credential: secret, required_scopes: ["read", "admin"] };
}

async function usedUp(limits: object): Promise<Request> {
  const { secret } = await key(limits);
  succeeded(await rest("POST", `${paths.keys}:verify`, { credential: secret }));
  return { credential: secret };
}

async function expired(): Promise<Request> {
  const { secret, keyId } = await key();
  await expire(suite, keyId);
  return { credential: secret };
}

async function rotatedAway(): Promise<Request> {
  const { secret, keyId } = await key();
  succeeded(await rest("POST", `${paths.issued}/${keyId}:rotate`, {}));
  return { credential: secret };
}

async function expiredToken(): Promise<Request> {
  const { token, expire_time } = await derive(rest, (await key()).secret, { ttl: "1s" });
  await eventually(async () => Date.now() > Date.parse(expire_time));
  return { credential: token };
}

async function tokenFor(audience: string, fields = {}): Promise<Request> {
  const { secret } = await key();
  const { token } = await derive(rest, secret, { algorithm: "TOKEN_ALGORITHM_JWT", audience: [audience] });
  return { credential: token, ...fields };
}

async function altered(): Promise<Request> {
  const { credential } = await tokenFor("books");
  const at = credential.lastIndexOf(".") + 2;
  return { credential: credential.slice(0, at) + (credential[at] === "A" ? "B" : "A") + credential.slice(at + 1) };
}

const HEAD = "FORMAT PASS, SIGNATURE PASS, EXISTENCE PASS";

/** The code of each verdict, a request that has it, and its checks with their results. */
const GOLDEN: readonly (readonly [code: string, make: () => Promise<Request>, checks: string])[] = [
  [
    "none",
    async () => ({ credential: (await key(there)).secret, client_ip: "203.0.113.7", required_scopes: ["read"] }),
    `${HEAD}, REVOCATION PASS, EXPIRY PASS, DISABLED PASS, ADDRESS PASS, AUDIENCE SKIPPED, SCOPES PASS, LIMITS SKIPPED`,
  ],
  [
    "INVALID_FORMAT",
    async () => ({ credential: "kh_v1_mistyped" }),
    "FORMAT FAIL, SIGNATURE SKIPPED, EXISTENCE SKIPPED, REVOCATION SKIPPED, EXPIRY SKIPPED, DISABLED SKIPPED, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED",
  ],
  [
    "SIGNATURE_INVALID",
    altered,
    "FORMAT PASS, SIGNATURE FAIL, EXISTENCE SKIPPED, REVOCATION SKIPPED, EXPIRY SKIPPED, DISABLED SKIPPED, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED",
  ],
  [
    "NOT_FOUND",
    async () => ({ credential: newRawKey() }),
    "FORMAT PASS, SIGNATURE SKIPPED, EXISTENCE FAIL, REVOCATION SKIPPED, EXPIRY SKIPPED, DISABLED SKIPPED, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED",
  ],
  [
    "REVOKED",
    revokedAndRestricted,
    `${HEAD}, REVOCATION FAIL, EXPIRY PASS, DISABLED PASS, ADDRESS FAIL, AUDIENCE SKIPPED, SCOPES FAIL, LIMITS SKIPPED`,
  ],
  [
    "EXPIRED",
    expired,
    `${HEAD}, REVOCATION PASS, EXPIRY FAIL, DISABLED PASS, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED`,
  ],
  [
    "REVOKED",
    rotatedAway,
    `${HEAD}, REVOCATION FAIL, EXPIRY PASS, DISABLED PASS, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED`,
  ],
  [
    "EXPIRED",
    expiredToken,
    `${HEAD}, REVOCATION PASS, EXPIRY FAIL, DISABLED PASS, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED`,
  ],
  [
    "DISABLED",
    disabled,
    `${HEAD}, REVOCATION PASS, EXPIRY PASS, DISABLED FAIL, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED`,
  ],
  [
    "IP_NOT_ALLOWED",
    async () => ({ credential: (await key(there)).secret, client_ip: "198.51.100.1" }),
    `${HEAD}, REVOCATION PASS, EXPIRY PASS, DISABLED PASS, ADDRESS FAIL, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS SKIPPED`,
  ],
  [
    "AUDIENCE_MISMATCH",
    () => tokenFor("books", { audience: "billing" }),
    `${HEAD}, REVOCATION PASS, EXPIRY PASS, DISABLED PASS, ADDRESS SKIPPED, AUDIENCE FAIL, SCOPES SKIPPED, LIMITS SKIPPED`,
  ],
  [
    "INSUFFICIENT_SCOPE",
    () => tokenFor("books", { audience: "books", required_scopes: ["read", "admin"] }),
    `${HEAD}, REVOCATION PASS, EXPIRY PASS, DISABLED PASS, ADDRESS SKIPPED, AUDIENCE PASS, SCOPES FAIL, LIMITS SKIPPED`,
  ],
  [
    "RATE_LIMITED",
    () => usedUp({ rate_limits: [{ name: "requests", quota: 1, window: "24h" }] }),
    `${HEAD}, REVOCATION PASS, EXPIRY PASS, DISABLED PASS, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS FAIL`,
  ],
  [
    "QUOTA_EXCEEDED",
    () => usedUp({ quotas: [{ name: "yearly", limit: 1, period: "QUOTA_PERIOD_YEAR" }] }),
    `${HEAD}, REVOCATION PASS, EXPIRY PASS, DISABLED PASS, ADDRESS SKIPPED, AUDIENCE SKIPPED, SCOPES SKIPPED, LIMITS FAIL`,
  ],
];

test("a failed check of the address names the client's and the allowed ones", async () => {
  const { secret } = await key(there);
  const detailOf = async (more: Json) => {
    const { checks } = succeeded(await rest("POST", path, { credential: secret, ...more }));
    return checks.find(({ name }: Json) => name === "VERIFICATION_CHECK_ADDRESS").detail;
  };
  const [absent, other] = [await detailOf({}), await detailOf({ client_ip: "198.51.100.1" })];
  expect(absent).toMatch(/^client_ip is not set; allowed: [\d.]+\/\d+$/);
  expect(other).toMatch(/^client_ip is not in [\d.]+\/\d+$/);
});

test.each(table(GOLDEN))(
  "the verdict %s is explained check by check, and is that of verify",
  async (code, make, golden) => {
    const request = await make();
    const explanation = succeeded(await rest("POST", path, request));
    const result = ({ name, result }: Json) =>
      `${name.replace("VERIFICATION_CHECK_", "")} ${result.replace("CHECK_RESULT_", "")}`;
    expect(explanation.checks.map(result).join(", ")).toBe(golden);
    expect(explanation.checks.filter(({ detail }: Json) => detail === "")).toEqual([]);
    const { is_valid, error_code, error_message, missing_scopes } = succeeded(
      await rest("POST", `${paths.keys}:verify`, request),
    );
    expect(explanation).toMatchObject({ is_valid, missing_scopes });
    // The seconds until a limit admits another verification pass meanwhile.
    const withoutTime = (message?: string) => message?.replace(/retry after \d+ s/, "retry later");
    expect(explanation.error_code).toBe(error_code);
    expect(withoutTime(explanation.error_message)).toBe(withoutTime(error_message));
    expect(error_code ?? "VERIFICATION_ERROR_none").toBe(`VERIFICATION_ERROR_${code}`);
  },
);

test("every verdict has an explanation", () => {
  const codes = Object.values(VerificationError).filter((name) => typeof name === "string");
  // A verdict that could not be reached has no checks: the call fails instead.
  const explained = codes.filter((code) => code !== "UNSPECIFIED" && code !== "INTERNAL");
  expect([...new Set(GOLDEN.map(([code]) => code))].sort()).toEqual([...explained, "none"].sort());
});

test("an explanation is not a use of the key", async () => {
  const { keyId, secret } = await key();
  succeeded(await rest("POST", path, { credential: secret }));
  await suite.server.restart();
  expect(succeeded(await rest("GET", `${paths.issued}/${keyId}`)).last_used_time).toBeUndefined();
});

test("an explanation contains neither the credential nor its digest", async () => {
  const { rawKey } = await importKey(rest);
  const { secret } = await key();
  for (const credential of [rawKey, secret, `${secret.slice(0, -6)}aaaaaa`]) {
    const { text } = await rest("POST", path, { credential });
    expect(text).not.toContain(credential.slice(-16));
  }
  const rows = await suite.sql<{ digest: Buffer }[]>`SELECT digest FROM api_keys`;
  const { text } = await rest("POST", path, { credential: secret });
  for (const { digest } of rows) {
    for (const coding of ["hex", "base64", "base64url"] as const) expect(text).not.toContain(digest.toString(coding));
  }
});

test("a request names either a credential or a key", async () => {
  const { keyId, secret } = await key();
  expectRefused(await rest("POST", path, {}), invalid("credential"));
  expectRefused(await rest("POST", path, { credential: secret, key_id: keyId }), invalid("key_id"));
  expectRefused(await rest("POST", path, { key_id: "no id" }), invalid("key_id"));
  expectRefused(await rest("POST", path, { key_id: UNKNOWN_KEY_ID }), notFound(UNKNOWN_KEY_ID));
  expect(ApiKeysService.method.explainApiKey.output.fields.map(({ name }) => name)).not.toContain("credential");
});
