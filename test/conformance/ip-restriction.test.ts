import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiKeysService, TokenAlgorithm, VerificationError } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import {
  alreadyExists,
  expectRefused,
  expire,
  invalid,
  keyKinds,
  newRawKey,
  succeeded,
  table,
} from "../support/conformance.ts";
import { answered, type CallRpc } from "../support/protocols/call.ts";
import { imported, issued } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { issue, type Json, paths, restClient } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const suite = useProtocols();
const { rest } = suite;

const { verifyApiKey, batchVerifyApiKeys, deriveToken, revokeApiKey, disableApiKey } = ApiKeysService.method;
const { getIssuedApiKey, listIssuedApiKeys } = IssuedApiKeysService.method;
const { selfRevokeApiKey } = SelfServiceService.method;
const { IP_NOT_ALLOWED } = VerificationError;

const GIVEN = ["203.0.113.0/24", "2001:DB8::/32", "198.51.100.7", "::ffff:203.0.113.0/120", "::FFFF:c633:6407"];
const CANONICAL = ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7/32"];
const RESTRICTED = { ipRestriction: { allowedCidrs: GIVEN } };

/** Clients, and whether a key with these blocks is accepted from them. */
const CLIENTS = table([
  ["203.0.113.7", true],
  ["::ffff:203.0.113.7", true],
  ["2001:db8:ffff::1", true],
  ["198.51.100.7", true],
  ["198.51.100.8", false],
  ["203.0.114.0", false],
  ["2001:db9::1", false],
  ["::203.0.113.7", false],
  ["2001:db8::1%eth0", false],
  ["203.0.113.7:80", false],
  ["203.0.113.07", false],
  ["203.0.113.7/32", false],
  ["203.0.113.7, 192.0.2.1", false],
  ["localhost", false],
  ["", false],
  [undefined, false],
] as const);

/** Changes the restriction of a key; null clears it. */
async function restrict(collection: string, keyId: string, allowed_cidrs: readonly string[] | null): Promise<Json> {
  const ip_restriction = allowed_cidrs === null ? null : { allowed_cidrs };
  return succeeded(await rest("PATCH", `${collection}/${keyId}?update_mask=ip_restriction`, { ip_restriction }));
}

/** Credentials of restricted keys: of both kinds, and tokens that were derived before the restriction. */
async function restrictedCredentials(call: CallRpc): Promise<string[]> {
  const [key, raw] = [await issued(call, RESTRICTED), await imported(call, RESTRICTED)];
  const [first, second] = [await issued(call), await imported(call)];
  const derive = async (credential: string, algorithm: TokenAlgorithm) =>
    answered(await call(deriveToken, { credential, algorithm })).token?.token ?? "";
  const jwt = await derive(first.secret, TokenAlgorithm.JWT);
  const macaroon = await derive(second.rawKey, TokenAlgorithm.MACAROON);
  await Promise.all([restrict(paths.issued, first.keyId, GIVEN), restrict(paths.imported, second.keyId, GIVEN)]);
  return [key.secret, raw.rawKey, jwt, macaroon];
}

describe("a key that is restricted to addresses", () => {
  test("has the blocks in their canonical form, without duplicates, in every answer of every protocol", async () => {
    const restriction = expect.objectContaining({ allowedCidrs: CANONICAL });
    for (const { name, call } of suite.protocols) {
      const { keyId } = await issued(call, RESTRICTED);
      const raw = await imported(call, RESTRICTED);
      expect(raw.ipRestriction, name).toEqual(restriction);
      const read = [
        answered(await call(getIssuedApiKey, { keyId })),
        answered(await call(ImportedApiKeysService.method.getImportedApiKey, { keyId: raw.keyId })),
        ...answered(await call(listIssuedApiKeys, { filter: `key_id="${keyId}"` })).issuedApiKeys,
      ];
      expect(read.map(({ ipRestriction }) => ipRestriction)).toEqual([restriction, restriction, restriction]);
    }
    const { record } = await issue(rest, { ip_restriction: { allowed_cidrs: ["10.0.0.0/8"] } });
    expect(record.ip_restriction).toEqual({ allowed_cidrs: ["10.0.0.0/8"] });
    expect((await issue(rest)).record).not.toHaveProperty("ip_restriction");
  });

  test("is accepted only from there, with each credential, over every protocol, alone and in a batch", async () => {
    for (const { name, call } of suite.protocols) {
      const credentials = await restrictedCredentials(call);
      for (const credential of credentials) {
        // The batch has all clients; single calls show that the field arrives by itself.
        const verdicts = CLIENTS.filter((_, place) => place % 5 === 0).map(async ([clientIp, expected]) => {
          const verdict = answered(await call(verifyApiKey, { credential, clientIp }));
          const { isValid, errorCode, keyId, actorId } = verdict;
          expect([isValid, errorCode], `${name} ${clientIp}`).toEqual([
            expected,
            expected ? undefined : IP_NOT_ALLOWED,
          ]);
          // A rejection says nothing of the key.
          if (!expected) expect([keyId, actorId, verdict.scopes]).toEqual([undefined, undefined, []]);
        });
        await Promise.all(verdicts);
      }
      const requests = credentials.flatMap((credential) => CLIENTS.map(([clientIp]) => ({ credential, clientIp })));
      const { results } = answered(await call(batchVerifyApiKeys, { requests }));
      expect(results.map(({ isValid }) => isValid)).toEqual(credentials.flatMap(() => CLIENTS.map(([, ok]) => ok)));
    }
  });

  test("a key without a restriction is accepted from anywhere, whatever client_ip is", async () => {
    for (const { call } of suite.protocols) {
      const { secret: credential } = await issued(call);
      const requests = CLIENTS.map(([clientIp]) => ({ credential, clientIp }));
      const { results } = answered(await call(batchVerifyApiKeys, { requests }));
      expect(results.map(({ isValid }) => isValid)).toEqual(CLIENTS.map(() => true));
    }
  });

  test("derives nothing", async () => {
    for (const { call } of suite.protocols) {
      for (const credential of await restrictedCredentials(call)) {
        const reply = await call(deriveToken, { credential, algorithm: TokenAlgorithm.JWT });
        expect(reply).toMatchObject({
          ok: false,
          code: "UNAUTHENTICATED",
          details: {
            "google.rpc.ErrorInfo": {
              reason: "CREDENTIAL_INVALID",
              metadata: { error_code: "VERIFICATION_ERROR_IP_NOT_ALLOWED" },
            },
          },
        });
      }
    }
  });

  test("revokes itself from any address, also when it is disabled", async () => {
    const [{ call }] = suite.protocols as [(typeof suite.protocols)[number]];
    const [key, raw] = [await issued(call, RESTRICTED), await imported(call, RESTRICTED)];
    const disabled = await issued(call, RESTRICTED);
    answered(await call(disableApiKey, { keyId: disabled.keyId }));
    for (const credential of [key.secret, raw.rawKey, disabled.secret]) {
      answered(await call(selfRevokeApiKey, { credential }));
      expect(answered(await call(verifyApiKey, { credential })).errorCode).toBe(VerificationError.REVOKED);
    }
  });

  test("is judged after its state, and before audience and scopes", async () => {
    const [{ call }] = suite.protocols as [(typeof suite.protocols)[number]];
    const codeOf = async (credential: string, more: object = {}) =>
      answered(await call(verifyApiKey, { credential, clientIp: "192.0.2.1", ...more })).errorCode;
    const [revoked, expired, disabled, bound] = await Promise.all([1, 2, 3, 4].map(() => issued(call, RESTRICTED)));
    if (!revoked || !expired || !disabled || !bound) throw new Error("keys were not issued");
    answered(await call(revokeApiKey, { keyId: revoked.keyId }));
    await expire(suite, expired.keyId);
    answered(await call(disableApiKey, { keyId: disabled.keyId }));
    expect(await codeOf(revoked.secret)).toBe(VerificationError.REVOKED);
    expect(await codeOf(expired.secret)).toBe(VerificationError.EXPIRED);
    expect(await codeOf(disabled.secret)).toBe(VerificationError.DISABLED);
    expect(await codeOf(bound.secret, { requiredScopes: ["none"], audience: "any" })).toBe(IP_NOT_ALLOWED);
    const [, , jwt = ""] = await restrictedCredentials(call);
    const wanted = { requiredScopes: ["none"], audience: "any" };
    expect(await codeOf(jwt, wanted)).toBe(IP_NOT_ALLOWED);
    expect(await codeOf(jwt, { ...wanted, clientIp: "203.0.113.1" })).toBe(VerificationError.AUDIENCE_MISMATCH);
    const allowed = { clientIp: "203.0.113.1", requiredScopes: ["none"] };
    expect(await codeOf(jwt, allowed)).toBe(VerificationError.INSUFFICIENT_SCOPE);
  });
});

const INVALID = table([
  ["host bits", { allowed_cidrs: ["10.0.0.0/8", "10.0.0.1/8"] }, ["ip_restriction.allowed_cidrs[1]"]],
  [
    "several errors",
    { allowed_cidrs: ["10.0.0.01", "::1", "fe80::1%1", "10.0.0.0/33"] },
    ["ip_restriction.allowed_cidrs[0]", "ip_restriction.allowed_cidrs[2]", "ip_restriction.allowed_cidrs[3]"],
  ],
  ["65 blocks", { allowed_cidrs: Array(65).fill("10.0.0.0/8") }, ["ip_restriction.allowed_cidrs"]],
  ["no block", { allowed_cidrs: [] }, ["ip_restriction.allowed_cidrs"]],
  ["nothing", {}, ["ip_restriction.allowed_cidrs"]],
  ["a long text", { allowed_cidrs: ["1".repeat(65)] }, ["ip_restriction.allowed_cidrs[0]"]],
] as const);

describe.each(INVALID)("a restriction with %s", (_, ip_restriction, fields) => {
  test.each(keyKinds(rest))("is refused for an $kind key", async ({ path, required }) => {
    expectRefused(await rest("POST", path, { ...required(), ip_restriction }), invalid(...fields));
  });

  test("is refused as an item of a batch", async () => {
    const item = () => ({ name: "n", actor_id: "a", raw_key: newRawKey() });
    const requests = [
      { ...item(), ip_restriction },
      { ...item(), ip_restriction: { allowed_cidrs: GIVEN } },
    ];
    const { results } = succeeded(await rest("POST", `${paths.imported}:batchCreate`, { requests }));
    expect(results[0].error_code).toBe("BATCH_CREATE_IMPORTED_API_KEYS_ERROR_INVALID_ARGUMENT");
    expect(results[0].error_message).toContain(fields[0]);
    expect(results[1].imported_api_key.ip_restriction).toEqual({ allowed_cidrs: CANONICAL });
  });
});

/** Two nodes: a change counts on both when its call has returned. */
let other: TestServer | undefined;
beforeAll(async () => {
  other = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl });
});
afterAll(() => other?.close());

describe.each(keyKinds(rest))("an update of an $kind key", ({ path, resource, make: create }) => {
  /** Returns whether the credential is accepted at each node, from an address of documentation. */
  async function acceptedAt(credential: string): Promise<boolean[]> {
    const nodes = [rest, restClient(other ?? expect.unreachable())];
    const answers = nodes.map((node) => node("POST", `${paths.keys}:verify`, { credential, client_ip: "203.0.113.7" }));
    return (await Promise.all(answers)).map((answer) => succeeded(answer).is_valid);
  }

  test("restricts it, changes and removes the restriction, on every node when the call returns", async () => {
    const { keyId, credential } = await create();
    for (let round = 0; round < 5; round++) {
      expect(await acceptedAt(credential)).toEqual([true, true]);
      await restrict(path, keyId, ["198.51.100.0/24"]);
      expect(await acceptedAt(credential)).toEqual([false, false]);
      expect((await restrict(path, keyId, GIVEN)).ip_restriction).toEqual({ allowed_cidrs: CANONICAL });
      expect(await acceptedAt(credential)).toEqual([true, true]);
      await restrict(path, keyId, ["198.51.100.0/24"]);
      expect(await acceptedAt(credential)).toEqual([false, false]);
      expect(await restrict(path, keyId, null)).not.toHaveProperty("ip_restriction");
    }
  });

  test("keeps the restriction with `*`, and without a mask", async () => {
    const { keyId } = await create();
    await restrict(path, keyId, GIVEN);
    for (const query of ["", "?update_mask=*"]) {
      const updated = succeeded(await rest("PATCH", `${path}/${keyId}${query}`, { name: "renamed" }));
      expect(updated.ip_restriction).toEqual({ allowed_cidrs: CANONICAL });
      const body = { name: "n", ip_restriction: { allowed_cidrs: ["::1"] } };
      const kept = succeeded(await rest("PATCH", `${path}/${keyId}${query}`, body));
      expect(kept.ip_restriction).toEqual({ allowed_cidrs: CANONICAL });
    }
    const unnamed = await rest("PATCH", `${path}/${keyId}`, { ip_restriction: { allowed_cidrs: ["::1"] } });
    expectRefused(unnamed, invalid("update_mask"));
  });

  test.each(INVALID)("refuses a restriction with %s, by its path in the request", async (_, ip_restriction, fields) => {
    const { keyId } = await create();
    const answer = await rest("PATCH", `${path}/${keyId}?update_mask=ip_restriction`, { ip_restriction });
    expectRefused(answer, invalid(...fields.map((field) => `${resource}.${field}`)));
  });
});

test("64 blocks are the most that a key has, and all of them count", async () => {
  const allowed_cidrs = Array.from({ length: 64 }, (_, index) => `2001:db8:${index.toString(16)}::/48`);
  const { secret: credential } = await issue(rest, { ip_restriction: { allowed_cidrs } });
  const verified = async (client_ip: string): Promise<Json> =>
    succeeded(await rest("POST", `${paths.keys}:verify`, { credential, client_ip }));
  for (const index of [0, 1, 62, 63]) {
    expect(await verified(`2001:db8:${index.toString(16)}::7`)).toMatchObject({ is_valid: true });
  }
  expect(await verified("2001:db8:40::7")).toMatchObject({ is_valid: false });
});

test("a request_id belongs to the restriction too", async () => {
  const body = { name: "n", actor_id: "a", request_id: "restricted", ip_restriction: { allowed_cidrs: GIVEN } };
  const first = succeeded(await rest("POST", paths.issued, body));
  expect(succeeded(await rest("POST", paths.issued, body)).issued_api_key).toEqual(first.issued_api_key);
  for (const ip_restriction of [undefined, { allowed_cidrs: ["0.0.0.0/0"] }]) {
    const other = await rest("POST", paths.issued, { ...body, ip_restriction });
    expectRefused(other, alreadyExists("REQUEST_ID_REUSED", "request_id"));
  }
});
