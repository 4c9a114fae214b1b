import { describe, expect, test } from "vitest";
import {
  badCredential,
  derive,
  endGrace,
  expectRefused,
  expire,
  invalid,
  type KeyKind,
  keyKinds,
  newRawKey,
  notFound,
  precondition,
  RFC_3339_UTC,
  revoke,
  succeeded,
  table,
  UNKNOWN_KEY_ID,
  useService,
} from "../support/conformance.ts";
import { type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

const REASONS = [
  "REVOCATION_REASON_UNSPECIFIED",
  "REVOCATION_REASON_KEY_COMPROMISE",
  "REVOCATION_REASON_AFFILIATION_CHANGED",
  "REVOCATION_REASON_SUPERSEDED",
  "REVOCATION_REASON_PRIVILEGE_WITHDRAWN",
] as const;
const [, COMPROMISE, , SUPERSEDED, WITHDRAWN] = REASONS;

const [{ make: ofIssued }] = keyKinds(rest) as [KeyKind];

const byId = (keyId: string, body: Json = {}) => rest("POST", `${paths.keys}/${keyId}:revoke`, body);
const byItself = (credential: string, body: Json = {}) => rest("POST", paths.selfRevoke, { credential, ...body });
const alreadyRevoked = (keyId: string) => precondition("API_KEY_ALREADY_REVOKED", keyId);

describe.each(keyKinds(rest))("revoking an $kind key", ({ path: own, otherPath: other, make }) => {
  const read = async (keyId: string) => succeeded(await rest("GET", `${own}/${keyId}`));

  test.each(table(REASONS))("for %s is stored and returned", async (reason) => {
    const { keyId, credential } = await make();
    const answer = succeeded(await byId(keyId, { reason }));
    expect(answer).toEqual({
      key_id: keyId,
      status: "KEY_STATUS_REVOKED",
      revoke_time: expect.stringMatching(RFC_3339_UTC),
      revocation_reason: reason,
    });
    const { revoke_time } = answer;
    const record = await read(keyId);
    expect(record).toMatchObject({ status: "KEY_STATUS_REVOKED", revoke_time, revocation_reason: reason });
    expect(record.update_time).toBe(revoke_time);
    expect(record.revocation_description).toBeUndefined();
    expect(await verify(rest, credential)).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_REVOKED" });
  });

  test("needs no reason", async () => {
    const { keyId } = await make();
    expect(succeeded(await byId(keyId)).revocation_reason).toBe("REVOCATION_REASON_UNSPECIFIED");
    expect((await read(keyId)).revocation_reason).toBe("REVOCATION_REASON_UNSPECIFIED");
  });

  test("a second time is 409, by id and by credential, and changes nothing", async () => {
    const { keyId, credential } = await make();
    await revoke(rest, keyId, { reason: WITHDRAWN, revocation_description: "left" });
    const before = await read(keyId);
    expectRefused(await byId(keyId, { reason: SUPERSEDED }), alreadyRevoked(keyId));
    expectRefused(await byItself(credential, { reason: SUPERSEDED }), alreadyRevoked(keyId));
    expect(await read(keyId)).toEqual(before);
    expect(before).toMatchObject({ revocation_reason: WITHDRAWN, revocation_description: "left" });
  });

  test("is possible after it has expired, and is final", async () => {
    const { keyId } = await make();
    await expire(suite, keyId);
    expect(succeeded(await byId(keyId, { reason: COMPROMISE })).status).toBe("KEY_STATUS_REVOKED");
    expectRefused(await byId(keyId), alreadyRevoked(keyId));
  });

  test("has one path per collection, which is 404 for the other kind", async () => {
    const { keyId } = await make();
    expectRefused(await rest("POST", `${other}/${keyId}:revoke`, { reason: COMPROMISE }), notFound(keyId));
    expect((await read(keyId)).status).toBe("KEY_STATUS_ACTIVE");
    expect(succeeded(await rest("POST", `${own}/${keyId}:revoke`, { reason: COMPROMISE }))).toMatchObject({
      key_id: keyId,
    });
    expectRefused(await rest("POST", `${other}/${keyId}:revoke`, {}), notFound(keyId));
    expectRefused(await rest("POST", `${own}/${keyId}:revoke`, {}), alreadyRevoked(keyId));
  });

  test("by its own credential needs no identifier", async () => {
    const { keyId, credential } = await make();
    expect(succeeded(await byItself(credential, { reason: COMPROMISE }))).toEqual({
      key_id: keyId,
      status: "KEY_STATUS_REVOKED",
      revoke_time: expect.stringMatching(RFC_3339_UTC),
      revocation_reason: COMPROMISE,
    });
    expect(await read(keyId)).toMatchObject({ status: "KEY_STATUS_REVOKED", revocation_reason: COMPROMISE });
    expectRefused(await byItself(credential), alreadyRevoked(keyId));
    expectRefused(await byId(keyId), alreadyRevoked(keyId));
  });

  test("by its own credential refuses the reason PRIVILEGE_WITHDRAWN", async () => {
    const { keyId, credential } = await make();
    expectRefused(await byItself(credential, { reason: WITHDRAWN }), invalid("reason"));
    expect((await read(keyId)).status).toBe("KEY_STATUS_ACTIVE");
  });

  test("by its own credential has no description", async () => {
    const { keyId, credential } = await make();
    // Longer than the fields of this request, so that it is not quoted.
    expectRefused(await byItself(credential, { revocation_description: "x" }), invalid('["revoca…"]'));
    expect((await read(keyId)).status).toBe("KEY_STATUS_ACTIVE");
  });
});

describe("revocation_description", () => {
  test.each(table([...REASONS, undefined]))("is accepted with the reason %s", async (reason) => {
    const { keyId } = await ofIssued();
    succeeded(await byId(keyId, { reason, revocation_description: "left" }));
    expect(succeeded(await rest("GET", `${paths.issued}/${keyId}`))).toMatchObject({
      revocation_reason: reason ?? "REVOCATION_REASON_UNSPECIFIED",
      revocation_description: "left",
    });
  });

  test.each(table([1, 1000]))("may have %d characters", async (length) => {
    const { keyId } = await ofIssued();
    const revocation_description = "ü".repeat(length);
    succeeded(await byId(keyId, { reason: COMPROMISE, revocation_description }));
    expect(succeeded(await rest("GET", `${paths.issued}/${keyId}`))).toMatchObject({ revocation_description });
  });

  test("is refused with 1001 characters", async () => {
    const { keyId } = await ofIssued();
    const body = { reason: COMPROMISE, revocation_description: "x".repeat(1001) };
    expectRefused(await byId(keyId, body), invalid("revocation_description"));
    expect(succeeded(await rest("GET", `${paths.issued}/${keyId}`)).status).toBe("KEY_STATUS_ACTIVE");
  });
});

describe("revoking refuses", () => {
  const BODIES = [
    ["an unknown reason", { reason: "REVOCATION_REASON_BORED" }, "reason"],
    ["a reason without its prefix", { reason: "KEY_COMPROMISE" }, "reason"],
    ["an unknown reason number", { reason: 99 }, "reason"],
    ["a misspelt field", { reasons: COMPROMISE }, "reasons"],
  ] as const;

  test.each(table(BODIES))("%s", async (_, body, field) => {
    const { keyId, credential } = await ofIssued();
    expectRefused(await byId(keyId, body), invalid(field));
    expectRefused(await byItself(credential, body), invalid(field));
    expect(await verify(rest, credential)).toMatchObject({ is_valid: true });
  });

  test("a key_id in the body that differs from the path", async () => {
    const { keyId } = await ofIssued();
    expectRefused(await byId(keyId, { key_id: UNKNOWN_KEY_ID }), invalid("key_id"));
    expect(succeeded(await byId(keyId, { key_id: keyId }))).toMatchObject({ key_id: keyId });
  });
});

describe("self-revocation", () => {
  const CASES: readonly (readonly [what: string, code: string, make: () => Promise<string>])[] = [
    ["an unknown raw key", "NOT_FOUND", async () => newRawKey()],
    ["a mistyped secret", "INVALID_FORMAT", async () => `${(await ofIssued()).credential}x`],
    ["an expired key", "EXPIRED", expired],
    ["a rotated secret", "REVOKED", async () => rotated({})],
    ["a secret after its grace period", "REVOKED", graceOver],
    ["a rotated secret of a key that is revoked now", "REVOKED", rotatedAndRevoked],
  ];

  async function expired() {
    const { keyId, credential } = await ofIssued();
    await expire(suite, keyId);
    return credential;
  }

  async function rotated(body: Json) {
    const { keyId, credential } = await ofIssued();
    succeeded(await rest("POST", `${paths.issued}/${keyId}:rotate`, body));
    return credential;
  }

  async function graceOver() {
    const { keyId, credential } = await ofIssued();
    succeeded(await rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" }));
    await endGrace(suite, keyId);
    return credential;
  }

  async function rotatedAndRevoked() {
    const { keyId, credential } = await ofIssued();
    succeeded(await rest("POST", `${paths.issued}/${keyId}:rotate`, {}));
    await revoke(rest, keyId);
    return credential;
  }

  test.each(table(CASES))("with %s is 401 with the reason", async (_, code, make) => {
    expectRefused(await byItself(await make(), { reason: COMPROMISE }), badCredential(code));
  });

  test.each(table(["JWT", "MACAROON"]))("with a derived %s is 400, and the key stays active", async (algorithm) => {
    const { credential } = await ofIssued();
    const { token } = await derive(rest, credential, { algorithm: `TOKEN_ALGORITHM_${algorithm}` });
    expectRefused(await byItself(token, { reason: COMPROMISE }), invalid("credential"));
    expect(await verify(rest, credential)).toMatchObject({ is_valid: true });
  });

  test("with a secret in its grace period revokes the key", async () => {
    const credential = await rotated({ grace_period: "1h" });
    expect(succeeded(await byItself(credential, { reason: COMPROMISE })).status).toBe("KEY_STATUS_REVOKED");
  });
});
