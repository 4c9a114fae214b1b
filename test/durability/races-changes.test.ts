import { describe, expect, test } from "vitest";
import { derive, importKey, revoke, succeeded } from "../support/conformance.ts";
import { atOnce, outcome, tally, useTwoServers } from "../support/races.ts";
import { type Answer, issue, paths, type RestClient, verify } from "../support/rest.ts";

const { suite, sides } = useTwoServers();

const REASONS = ["KEY_COMPROMISE", "AFFILIATION_CHANGED", "SUPERSEDED"].map((name) => `REVOCATION_REASON_${name}`);

const send = {
  revoke: (rest: RestClient, keyId: string, reason = REASONS[0]) =>
    rest("POST", `${paths.keys}/${keyId}:revoke`, { reason }),
  selfRevoke: (rest: RestClient, credential: string, reason = REASONS[0]) =>
    rest("POST", paths.selfRevoke, { credential, reason }),
  rotate: (rest: RestClient, keyId: string, body = {}) => rest("POST", `${paths.issued}/${keyId}:rotate`, body),
  update: (rest: RestClient, keyId: string, fields: object) => rest("PATCH", `${paths.issued}/${keyId}`, fields),
};

async function get(keyId: string) {
  return succeeded(await suite.rest("GET", `${paths.issued}/${keyId}`));
}

/** Returns the verdicts on secrets in order: `valid`, or the error. */
async function verdicts(secrets: readonly string[]): Promise<string[]> {
  const requests = secrets.map((credential) => ({ credential }));
  const { results } = succeeded(await suite.rest("POST", `${paths.keys}:batchVerify`, { requests }));
  return results.map((result: { is_valid: boolean; error_code: string }) =>
    result.is_valid ? "valid" : result.error_code,
  );
}

function winners(answers: readonly Answer[]): Answer[] {
  return answers.filter(({ status }) => status === 200);
}

describe.each(sides)("with %s", (_, rest) => {
  test("one of 50 concurrent revocations succeeds, and its reason stays", async () => {
    const { keyId, secret } = await issue(rest(0));
    const answers = await atOnce(50, (i) => send.revoke(rest(i), keyId, REASONS[i % REASONS.length]));
    expect(tally(answers)).toEqual({ 200: 1, "409 API_KEY_ALREADY_REVOKED": 49 });
    const [winner] = winners(answers);
    const { revoke_time, revocation_reason } = winner?.body ?? {};
    expect(await get(keyId)).toMatchObject({ status: "KEY_STATUS_REVOKED", revoke_time, revocation_reason });
    expect(await verdicts([secret])).toEqual(["VERIFICATION_ERROR_REVOKED"]);
  });

  test("one of several revocations by the administrator and by the key itself succeeds", async () => {
    const { keyId, secret } = await issue(rest(0));
    const answers = await atOnce(50, (i) =>
      i % 4 < 2 ? send.revoke(rest(i), keyId, REASONS[1]) : send.selfRevoke(rest(i), secret, REASONS[2]),
    );
    expect(tally(answers)).toEqual({ 200: 1, "409 API_KEY_ALREADY_REVOKED": 49 });
    const [winner] = winners(answers);
    expect((await get(keyId)).revocation_reason).toBe(winner?.body.revocation_reason);
  });

  test("30 concurrent rotations without grace period leave one valid secret, the last one", async () => {
    const { keyId, secret } = await issue(rest(0));
    const answers = await atOnce(30, (i) => send.rotate(rest(i), keyId));
    expect(tally(answers)).toEqual({ 200: 30 });
    const secrets = answers.map(({ body }) => body.secret as string);
    expect(new Set([secret, ...secrets]).size).toBe(31);
    const good = await verdicts(secrets);
    expect(good.filter((verdict) => verdict === "valid")).toHaveLength(1);
    expect(await verdicts([secret])).toEqual(["VERIFICATION_ERROR_REVOKED"]);
    const last = secrets[good.indexOf("valid")] ?? "";
    expect((await get(keyId)).hint).toContain(last.slice(-4));
    const [row] = await suite.sql`SELECT previous_secrets FROM api_keys WHERE key_id = ${keyId}`;
    expect(row).toEqual({ previous_secrets: [] });
  });

  test("16 of 30 concurrent rotations with grace period succeed, and all their secrets are valid", async () => {
    const { keyId, secret } = await issue(rest(0));
    const answers = await atOnce(30, (i) => send.rotate(rest(i), keyId, { grace_period: "1h" }));
    expect(tally(answers)).toEqual({ 200: 16, "409 TOO_MANY_VALID_SECRETS": 14 });
    const secrets = [secret, ...winners(answers).map(({ body }) => body.secret as string)];
    expect(await verdicts(secrets)).toEqual(secrets.map(() => "valid"));
    const next = succeeded(await send.rotate(rest(1), keyId));
    expect(await verdicts([...secrets, next.secret])).toEqual([
      ...secrets.map(() => "VERIFICATION_ERROR_REVOKED"),
      "valid",
    ]);
  });

  test("concurrent changes of different fields all succeed, and update_time never decreases", async () => {
    const { keyId } = await issue(rest(0));
    const fields = [{ name: "changed" }, { scopes: ["a", "b"] }, { metadata: { team: "blue" } }];
    const answers = await atOnce(30, (i) => send.update(rest(i), keyId, fields[i % fields.length] ?? {}));
    expect(tally(answers)).toEqual({ 200: 30 });
    const record = await get(keyId);
    expect(record).toMatchObject(Object.assign({}, ...fields));
    const times = answers.map(({ body }) => Date.parse(body.update_time));
    expect(Date.parse(record.update_time)).toBe(Math.max(...times));
  });

  test("a change that races a revocation is executed completely or refused, and the key ends revoked", async () => {
    const outcomes = await atOnce(20, async (i) => {
      const { keyId } = await issue(rest(i));
      const changes = { name: "changed", scopes: ["c"], metadata: { changed: "yes" } };
      const [update] = await Promise.all([send.update(rest(i), keyId, changes), revoke(rest(i + 1), keyId)]);
      const record = await get(keyId);
      const made = update.status === 200 ? changes : { name: "a key", scopes: [], metadata: {} };
      expect(record).toMatchObject({ ...made, status: "KEY_STATUS_REVOKED" });
      expect(Date.parse(record.update_time)).toBeGreaterThanOrEqual(Date.parse(record.revoke_time));
      if (update.status === 200) expect(update.body.status).toBe("KEY_STATUS_ACTIVE");
      return outcome(update);
    });
    expect(["200", "409 API_KEY_REVOKED"]).toEqual(expect.arrayContaining([...new Set(outcomes)]));
  });

  test("no secret and no token is valid after a rotation has raced a revocation", async () => {
    const outcomes = await atOnce(20, async (i) => {
      const { keyId, secret } = await issue(rest(i));
      const { token } = await derive(rest(i), secret);
      const rotation = () => send.rotate(rest(i), keyId, i % 2 === 0 ? {} : { grace_period: "1h" });
      const [rotated] = await Promise.all([rotation(), revoke(rest(i + 1), keyId)]);
      if (rotated.status === 200) expect(rotated.body.issued_api_key.status).toBe("KEY_STATUS_ACTIVE");
      const secrets = [secret, token, ...(rotated.status === 200 ? [rotated.body.secret] : [])];
      expect(await verdicts(secrets)).toEqual(secrets.map(() => "VERIFICATION_ERROR_REVOKED"));
      return outcome(rotated);
    });
    expect(["200", "409 API_KEY_REVOKED"]).toEqual(expect.arrayContaining([...new Set(outcomes)]));
  });

  test("one of ten concurrent deletions succeeds, and from then on no verification accepts the key", async () => {
    const { keyId, rawKey } = await importKey(rest(0));
    let deleted = false;
    const watch = async (i: number) => {
      for (let since = deleted; ; since = deleted) {
        const verdict = await verify(rest(i), rawKey);
        if (since) expect(verdict).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_NOT_FOUND" });
        else expect([undefined, "VERIFICATION_ERROR_NOT_FOUND"]).toContain(verdict.error_code);
        if (since) return;
      }
    };
    const watching = atOnce(4, watch);
    const answers = await atOnce(10, async (i) => {
      const answer = await rest(i)("DELETE", `${paths.imported}/${keyId}`);
      deleted ||= answer.status === 200;
      return answer;
    });
    expect(tally(answers)).toEqual({ 200: 1, "404 API_KEY_NOT_FOUND": 9 });
    await watching;
  });

  test("a revocation that races a deletion succeeds or is NOT_FOUND", async () => {
    const outcomes = await atOnce(10, async (i) => {
      const { keyId, rawKey } = await importKey(rest(i));
      const [revoked, deleted] = await Promise.all([
        send.revoke(rest(i), keyId),
        rest(i + 1)("DELETE", `${paths.imported}/${keyId}`),
      ]);
      expect(deleted.status).toBe(200);
      expect(await verify(rest(i), rawKey)).toMatchObject({ error_code: "VERIFICATION_ERROR_NOT_FOUND" });
      return outcome(revoked);
    });
    expect(["200", "404 API_KEY_NOT_FOUND"]).toEqual(expect.arrayContaining([...new Set(outcomes)]));
  });
});
