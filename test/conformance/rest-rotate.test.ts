import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  between,
  derive,
  endGrace,
  expectRefused,
  ISSUED_SECRET,
  invalid,
  precondition,
  RFC_3339_UTC,
  succeeded,
  table,
  useService,
} from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

const rotateAt = (keyId: string, body: Json = {}) => rest("POST", `${paths.issued}/${keyId}:rotate`, body);
const rotate = async (keyId: string, body: Json = {}) => succeeded(await rotateAt(keyId, body));
const isValid = async (credential: string) => (await verify(rest, credential)).is_valid;
const rotatedSecret = { is_valid: false, error_code: "VERIFICATION_ERROR_REVOKED" };

describe("rotation", () => {
  test("gives the same key a new secret and changes nothing else", async () => {
    const { keyId, secret, record } = await issue(rest, { scopes: ["a"], ttl: "1h", metadata: { k: "v" } });
    const body = await rotate(keyId);
    expect(body.secret).toMatch(ISSUED_SECRET);
    expect(body.secret).not.toBe(secret);
    const time = expect.stringMatching(RFC_3339_UTC);
    const hint = `kh_v1_…${body.secret.slice(-4)}`;
    expect(body).toEqual({
      secret: body.secret,
      issued_api_key: { ...record, hint, update_time: time, rotate_time: time },
    });
    expect(body.issued_api_key.rotate_time).toBe(body.issued_api_key.update_time);
    expect(succeeded(await rest("GET", `${paths.issued}/${keyId}`))).toEqual(body.issued_api_key);
  });

  test("stops the old secret at once", async () => {
    const { keyId, secret } = await issue(rest);
    expect(await isValid(secret)).toBe(true);
    const next = await rotate(keyId);
    expect(await verify(rest, secret)).toMatchObject(rotatedSecret);
    expect(await verify(rest, next.secret)).toMatchObject({ is_valid: true, key_id: keyId });
  });

  test("requires no body", async () => {
    const { keyId } = await issue(rest);
    expect(succeeded(await rest("POST", `${paths.issued}/${keyId}:rotate`)).secret).toMatch(ISSUED_SECRET);
  });
});

describe("endGrace", () => {
  test("makes the older secrets and their tokens invalid at once, and keeps the current one", async () => {
    const { keyId, secret } = await issue(rest);
    const { token } = await derive(rest, secret);
    const { secret: second } = await rotate(keyId, { grace_period: "24h" });
    const { secret: third } = await rotate(keyId, { grace_period: "24h" });
    for (const credential of [secret, token, second, third]) expect(await isValid(credential)).toBe(true);
    const ended = succeeded(await rest("POST", `${paths.issued}/${keyId}:endGrace`, {}));
    expect(ended).toEqual(succeeded(await rest("GET", `${paths.issued}/${keyId}`)));
    for (const credential of [secret, token, second])
      expect(await verify(rest, credential)).toMatchObject(rotatedSecret);
    expect(await isValid(third)).toBe(true);
    succeeded(await rest("POST", `${paths.issued}/${keyId}:endGrace`, {}));
    const filter = encodeURIComponent(`key_id="${keyId}" AND action="key.updated"`);
    const { audit_events: events } = succeeded(await rest("GET", `${paths.auditEvents}?filter=${filter}`));
    expect(events.map(({ rpc }: Json) => rpc.split("/")[1])).toEqual(["EndGracePeriod", "EndGracePeriod"]);
  });

  test("requires an issued key that is in force", async () => {
    const { keyId } = await issue(rest);
    succeeded(await rest("POST", `${paths.keys}/${keyId}:revoke`, {}));
    expectRefused(await rest("POST", `${paths.issued}/${keyId}:endGrace`, {}), precondition("API_KEY_REVOKED", keyId));
  });
});

describe("grace_period", () => {
  test("keeps both secrets valid and returns the end of the old one", async () => {
    const { keyId, secret } = await issue(rest);
    const { secret: next, issued_api_key } = await rotate(keyId, { grace_period: "24h" });
    const old = await verify(rest, secret);
    expect(old).toMatchObject({ is_valid: true, key_id: keyId });
    expect(between(issued_api_key.rotate_time, old.expire_time)).toBe(24 * 3_600_000);
    expect(await verify(rest, next)).not.toHaveProperty("expire_time");
  });

  test("invalidates the old secret when it ends", async () => {
    const { keyId, secret } = await issue(rest);
    const { secret: next } = await rotate(keyId, { grace_period: "1h" });
    await endGrace(suite, keyId);
    expect(await verify(rest, secret)).toMatchObject(rotatedSecret);
    expect(await isValid(next)).toBe(true);
  });

  test("does not outlive the key", async () => {
    const { keyId, secret, record } = await issue(rest, { ttl: "1h" });
    await rotate(keyId, { grace_period: "30d" });
    expect((await verify(rest, secret)).expire_time).toBe(record.expire_time);
  });

  test("is separate for each of several secrets", async () => {
    const { keyId, secret: first } = await issue(rest);
    const { secret: second } = await rotate(keyId, { grace_period: "1h" });
    const { secret: third, issued_api_key } = await rotate(keyId, { grace_period: "2h" });
    const [one, two, three] = await Promise.all([first, second, third].map((secret) => verify(rest, secret)));
    expect([one.is_valid, two.is_valid, three.is_valid]).toEqual([true, true, true]);
    expect(between(issued_api_key.rotate_time, two.expire_time)).toBe(2 * 3_600_000);
    expect(Date.parse(one.expire_time)).toBeLessThan(Date.parse(two.expire_time));
  });

  test("ends early by a rotation without one", async () => {
    const { keyId, secret: first } = await issue(rest);
    const { secret: second } = await rotate(keyId, { grace_period: "1h" });
    const { secret: third } = await rotate(keyId);
    expect(await Promise.all([first, second, third].map(isValid))).toEqual([false, false, true]);
  });

  test("covers at most 16 secrets; one more is 409 until one ends or all are dropped", async () => {
    const { keyId, secret } = await issue(rest);
    for (let i = 0; i < 16; i++) await rotate(keyId, { grace_period: "1h" });
    expect(await isValid(secret)).toBe(true);
    expectRefused(await rotateAt(keyId, { grace_period: "1h" }), precondition("TOO_MANY_VALID_SECRETS", keyId));
    await endGrace(suite, keyId);
    await rotate(keyId, { grace_period: "1h" });
    expect(await isValid((await rotate(keyId)).secret)).toBe(true);
  });

  const TAKEN = ["1s", "30d"];

  test.each(table(TAKEN))("may be %s", async (grace_period) => {
    const { keyId } = await issue(rest);
    expect((await rotate(keyId, { grace_period })).secret).toMatch(ISSUED_SECRET);
  });

  const REFUSED = ["0s", "30d1s", "soon", 60];

  test.each(table(REFUSED))("may not be %j, and the secret remains", async (grace_period) => {
    const { keyId, secret } = await issue(rest);
    expectRefused(await rotateAt(keyId, { grace_period }), invalid("grace_period"));
    expect(await isValid(secret)).toBe(true);
  });

  test("is refused when misspelt, since the old secret would stop at once", async () => {
    const { keyId, secret } = await issue(rest);
    expectRefused(await rotateAt(keyId, { grace: "1h" }), invalid("grace"));
    expect(await isValid(secret)).toBe(true);
  });
});

/** Statements of a race: the row does not match the condition of the change, and then it does again. */
const LOST_RACE = `
  CREATE FUNCTION lose_race() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.name = 'concurrent' THEN RETURN NULL; END IF;
    RETURN NEW;
  END
  $$;
  CREATE TRIGGER lose_race BEFORE UPDATE ON api_keys FOR EACH ROW EXECUTE FUNCTION lose_race()`;

describe("a rotation that loses a race is a concurrent change", () => {
  const expectOvertaken = async (keyId: string, body: Json) => {
    const { status, body: answer } = await rotateAt(keyId, body);
    expect({ status, reason: answer.error.details[0].reason }).toEqual({ status: 409, reason: "CONCURRENT_CHANGE" });
  };

  beforeAll(() => suite.sql.unsafe(LOST_RACE));
  afterAll(() => suite.sql.unsafe("DROP FUNCTION lose_race CASCADE"));

  test.each(table([{}, { grace_period: "1h" }]))("with %j, below the maximum number of secrets", async (body) => {
    const { keyId } = await issue(rest, { name: "concurrent" });
    await expectOvertaken(keyId, body);
  });

  test("without a grace period, at the maximum number of secrets", async () => {
    const { keyId, secret } = await issue(rest);
    for (let i = 0; i < 16; i++) await rotate(keyId, { grace_period: "1h" });
    succeeded(await rest("PATCH", `${paths.issued}/${keyId}`, { name: "concurrent" }));
    await expectOvertaken(keyId, {});
    expectRefused(await rotateAt(keyId, { grace_period: "1h" }), precondition("TOO_MANY_VALID_SECRETS", keyId));
    expect(await isValid(secret)).toBe(true);
  });
});

describe.each(table(["JWT", "MACAROON"]))("a %s of a rotated key", (algorithm) => {
  const token = async (credential: string) =>
    (await derive(rest, credential, { algorithm: `TOKEN_ALGORITHM_${algorithm}` })).token;

  test("is invalid once the secret that it was derived from is", async () => {
    const { keyId, secret } = await issue(rest);
    const old = await token(secret);
    const { secret: next } = await rotate(keyId);
    expect(await verify(rest, old)).toMatchObject(rotatedSecret);
    expect(await isValid(await token(next))).toBe(true);
  });

  test("is valid until the grace period of the secret ends", async () => {
    const { keyId, secret } = await issue(rest);
    const before = await token(secret);
    const { secret: next } = await rotate(keyId, { grace_period: "30m" });
    const during = await token(secret);
    const after = await token(next);
    const fromToken = await token(before);
    const all = [before, during, after, fromToken];
    expect(await Promise.all(all.map(isValid))).toEqual([true, true, true, true]);
    await endGrace(suite, keyId);
    expect(await Promise.all(all.map(isValid))).toEqual([false, false, true, false]);
    expect(await verify(rest, fromToken)).toMatchObject(rotatedSecret);
  });

  test("derived in the grace period does not outlive it", async () => {
    const { keyId, secret } = await issue(rest);
    await rotate(keyId, { grace_period: "10m" });
    const end = (await verify(rest, secret)).expire_time;
    const { expire_time } = await derive(rest, secret, { algorithm: `TOKEN_ALGORITHM_${algorithm}`, ttl: "1h" });
    expect(between(expire_time, end)).toBeGreaterThanOrEqual(0);
    expect(between(expire_time, end)).toBeLessThan(1000);
  });
});
