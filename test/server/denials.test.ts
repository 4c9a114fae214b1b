import { expect, test } from "vitest";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { eventually } from "../support/keyhold.ts";
import { type Json, paths, restClient } from "../support/rest.ts";

const suite = useGuardedService(() => ({}));

const call = (method: string, path: string, token: string | null, body?: Json) =>
  restClient(suite.server)(method, path, body, token === null ? {} : bearer(token));

/** Returns the events of denied calls of an RPC as soon as there are so many. */
async function denied(rpc: string, count = 1): Promise<Json[]> {
  const filter = `action="call.denied" AND rpc="keyhold.v2alpha1.${rpc}"`;
  const path = `/v2alpha1/admin/auditEvents?filter=${encodeURIComponent(filter)}`;
  let events: Json[] = [];
  await eventually(async () => {
    events = (await call("GET", path, suite.token("keyhold:audit"))).body?.audit_events;
    return events.length >= count;
  });
  return events;
}

test("calls without the scope are events with their caller, and further ones are counted", async () => {
  const token = suite.token("keyhold:verify");
  for (let times = 0; times < 3; times++) expect((await call("GET", paths.keys, token)).status).toBe(403);
  const [event] = await denied("ApiKeysService/ListApiKeys");
  expect(event).toMatchObject({ reason: "NOT_PERMITTED", client_ip: "127.0.0.1", peer_ip: "127.0.0.1" });
  expect(event.caller).toMatchObject({ method: "admin-token", name: expect.stringMatching(/^admin-token:/) });
  expect(event.changes).toContainEqual({ field: "count", after: expect.any(Number) });
});

test("a call by a revoked token is an event with the key, and one without a credential has no caller", async () => {
  const admin = suite.token("keyhold:admin");
  const fields = { name: "a token", actor_id: "ops", scopes: ["keyhold:keys.read"] };
  const { secret, issued_api_key: key } = (await call("POST", paths.issued, admin, fields)).body ?? {};
  await call("POST", `${paths.keys}/${key.key_id}:revoke`, admin, {});
  expect((await call("GET", paths.imported, secret)).status).toBe(401);
  expect((await call("GET", paths.imported, null)).status).toBe(401);
  const events = await denied("ImportedApiKeysService/ListImportedApiKeys", 2);
  const anonymous = { caller: expect.objectContaining({ name: "none:anonymous" }) };
  expect(events).toContainEqual(expect.objectContaining({ ...anonymous, reason: "KEY_REVOKED", key_id: key.key_id }));
  expect(events).toContainEqual(expect.objectContaining({ ...anonymous, reason: "MISSING", key_id: "" }));
});

test("a call that may not change this key is an event", async () => {
  const admin = suite.token("keyhold:admin");
  const fields = { name: "a token", actor_id: "ops", scopes: ["keyhold:keys.read"] };
  const { issued_api_key: key } = (await call("POST", paths.issued, admin, fields)).body ?? {};
  const writer = suite.token("keyhold:keys.disable");
  expect((await call("POST", `${paths.keys}/${key.key_id}:disable`, writer, {})).status).toBe(403);
  const [event] = await denied("ApiKeysService/DisableApiKey");
  expect(event).toMatchObject({ reason: "NOT_PERMITTED", caller: { method: "admin-token" } });
});
