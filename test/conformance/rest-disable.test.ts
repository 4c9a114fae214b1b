import { describe, expect, test } from "vitest";
import {
  badCredential,
  derive,
  expectRefused,
  expire,
  importKey,
  invalid,
  keyKinds,
  notFound,
  precondition,
  RFC_3339_UTC,
  recordsOf,
  revoke,
  succeeded,
  UNKNOWN_KEY_ID,
  useService,
} from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

const disable = (keyId: string, body: Json = {}) => rest("POST", `${paths.keys}/${keyId}:disable`, body);
const enable = (keyId: string) => rest("POST", `${paths.keys}/${keyId}:enable`, {});
const DISABLED = { is_valid: false, error_code: "VERIFICATION_ERROR_DISABLED", error_message: "the key is disabled" };

describe.each(keyKinds(rest))("disabling an $kind key", ({ kind, path: own, otherPath: other, make }) => {
  const read = async (keyId: string) => succeeded(await rest("GET", `${own}/${keyId}`));

  test("is stored, returned and lifted by enabling", async () => {
    const { keyId, credential } = await make();
    const before = await read(keyId);
    const answer = succeeded(await disable(keyId, { reason: "suspected leak" }));
    expect(answer).toEqual({
      restricted_to_actor_ids: [],
      previous_secrets: [],
      ...before,
      kind: `KEY_KIND_${kind.toUpperCase()}`,
      status: "KEY_STATUS_DISABLED",
      disable_time: expect.stringMatching(RFC_3339_UTC),
      disable_reason: "suspected leak",
      disabled_by: "none:anonymous",
      update_time: answer.disable_time,
    });
    const { kind: _, restricted_to_actor_ids: __, previous_secrets: ___, ...record } = answer;
    expect(await read(keyId)).toMatchObject(record);
    expect(await verify(rest, credential)).toMatchObject({ ...DISABLED, scopes: [], metadata: {} });

    const enabled = succeeded(await enable(keyId));
    const { disable_time: ____, disable_reason: _____, disabled_by: ______, ...shown } = answer;
    expect(enabled).toEqual({ ...shown, status: "KEY_STATUS_ACTIVE", update_time: enabled.update_time });
    expect(await verify(rest, credential)).toMatchObject({ is_valid: true, status: "KEY_STATUS_ACTIVE" });
  });

  test("a second time keeps the first time and reason, and enabling twice changes nothing", async () => {
    const { keyId } = await make();
    const first = succeeded(await disable(keyId, { reason: "first" }));
    expect(succeeded(await disable(keyId, { reason: "second" }))).toEqual(first);
    const enabled = succeeded(await enable(keyId));
    expect(succeeded(await enable(keyId))).toEqual(enabled);
    const again = succeeded(await disable(keyId));
    expect(again.disable_reason).toBeUndefined();
  });

  test("by its own collection only", async () => {
    const { keyId } = await make();
    for (const verb of ["disable", "enable"]) {
      expectRefused(await rest("POST", `${other}/${keyId}:${verb}`, {}), notFound(keyId));
      expect(succeeded(await rest("POST", `${own}/${keyId}:${verb}`, {})).key_id).toBe(keyId);
    }
  });

  test.each(["TOKEN_ALGORITHM_JWT", "TOKEN_ALGORITHM_MACAROON"])("disables derived tokens (%s)", async (algorithm) => {
    const { keyId, credential } = await make();
    const { token } = await derive(rest, credential, { algorithm });
    const { token: narrower } = await derive(rest, token, { algorithm });
    await disable(keyId);
    for (const one of [token, narrower]) expect(await verify(rest, one)).toMatchObject(DISABLED);
    for (const one of [credential, token])
      expectRefused(
        await rest("POST", `${paths.keys}:derive`, { credential: one, algorithm }),
        badCredential("DISABLED"),
      );
    await enable(keyId);
    for (const one of [token, narrower]) expect(await verify(rest, one)).toMatchObject({ is_valid: true });
  });

  test("in a batch concerns no other credential, and shows in no-cache too", async () => {
    const [one, two] = [await make(), await make()];
    await disable(one.keyId);
    const requests = [one, two].map(({ credential }) => ({ credential }));
    const { results } = succeeded(await rest("POST", `${paths.keys}:batchVerify`, { requests }));
    expect(results).toMatchObject([DISABLED, { is_valid: true }]);
    const headers = { "cache-control": "no-cache" };
    const body = { credential: one.credential };
    expect(succeeded(await rest("POST", `${paths.keys}:verify`, body, headers))).toMatchObject(DISABLED);
  });

  test("allows updates, rotation and revocation", async () => {
    const { keyId, credential } = await make();
    await disable(keyId);
    const updated = succeeded(await rest("PATCH", `${own}/${keyId}`, { name: "renamed" }));
    expect(updated).toMatchObject({ name: "renamed", status: "KEY_STATUS_DISABLED" });
    expect(await verify(rest, credential)).toMatchObject(DISABLED);
    expect(await revoke(rest, keyId)).toMatchObject({ status: "KEY_STATUS_REVOKED" });
    expect(await verify(rest, credential)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
    for (const change of [disable, enable]) expectRefused(await change(keyId), precondition("API_KEY_REVOKED", keyId));
  });

  test("allows its holder to revoke it", async () => {
    const { keyId, credential } = await make();
    await disable(keyId);
    const body = { credential, reason: "REVOCATION_REASON_KEY_COMPROMISE" };
    expect(succeeded(await rest("POST", paths.selfRevoke, body))).toMatchObject({ status: "KEY_STATUS_REVOKED" });
    expect(await read(keyId)).toMatchObject({ disable_time: expect.any(String) });
  });

  test("is refused for an expired key, like enabling", async () => {
    const [{ keyId }, disabled] = [await make({ ttl: "1h" }), await make({ ttl: "1h" })];
    await disable(disabled.keyId);
    for (const id of [keyId, disabled.keyId]) {
      await expire(suite, id);
      for (const change of [disable, enable]) expectRefused(await change(id), precondition("API_KEY_EXPIRED", id));
    }
    expect(await read(disabled.keyId)).toMatchObject({ status: "KEY_STATUS_EXPIRED" });
    expect(await verify(rest, disabled.credential)).toMatchObject({ error_code: "VERIFICATION_ERROR_EXPIRED" });
  });

  test("is shown by filters", async () => {
    const actor_id = `disabled_${kind}`;
    const [one, two] = [await make({ actor_id }), await make({ actor_id })];
    await disable(one.keyId);
    const idsOf = async (status: string) => {
      const filter = encodeURIComponent(`actor_id="${actor_id}" AND status=${status}`);
      return recordsOf(succeeded(await rest("GET", `${own}?filter=${filter}`))).map(({ key_id }) => key_id);
    };
    expect(await idsOf("KEY_STATUS_DISABLED")).toEqual([one.keyId]);
    expect(await idsOf("KEY_STATUS_ACTIVE")).toEqual([two.keyId]);
  });
});

test("a rotated key stays disabled, and both of its secrets are accepted when it is enabled", async () => {
  const { keyId, secret } = await issue(rest);
  await disable(keyId, { reason: "paused" });
  const rotated = succeeded(await rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" }));
  expect(rotated.issued_api_key).toMatchObject({ status: "KEY_STATUS_DISABLED", disable_reason: "paused" });
  const secrets = [secret, rotated.secret];
  for (const one of secrets) expect(await verify(rest, one)).toMatchObject(DISABLED);
  await enable(keyId);
  for (const one of secrets) expect(await verify(rest, one)).toMatchObject({ is_valid: true });
});

test("a disabled key can be deleted, and its raw key imported again", async () => {
  const { keyId, rawKey } = await importKey(rest);
  await disable(keyId);
  expect(succeeded(await rest("DELETE", `${paths.imported}/${keyId}`))).toEqual({});
  await importKey(rest, { raw_key: rawKey });
  expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true });
});

test("being disabled is judged before required scopes", async () => {
  const { keyId, secret } = await issue(rest, { ttl: "1h", scopes: ["read"] });
  await disable(keyId);
  const body = { credential: secret, required_scopes: ["write"] };
  expect(succeeded(await rest("POST", `${paths.keys}:verify`, body))).toMatchObject(DISABLED);
});

test("a reason has at most 1000 characters", async () => {
  expectRefused(await disable(UNKNOWN_KEY_ID, { reason: "x".repeat(1001) }), invalid("reason"));
});
