import { expect, test } from "vitest";
import { derive, importKey, newRawKey, revoke, succeeded, useService } from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();

/** The fields of responses of release 0.1. */
const KEY = [
  ...["key_id", "name", "actor_id", "scopes", "status", "metadata", "create_time", "update_time", "expire_time"],
  ...["last_used_time", "revoke_time", "revocation_reason", "revocation_description", "hint"],
];
const ISSUED = [...KEY, "rotate_time"];
const VERDICT = [
  ...["is_valid", "key_id", "actor_id", "scopes", "metadata", "status", "expire_time", "issuer", "credential_type"],
  ...["error_code", "error_message", "stale"],
];
const TOKEN = ["token", "token_id", "expire_time", "scopes", "claims"];
const REVOKED = ["key_id", "status", "revoke_time", "revocation_reason"];

/**
 * Fields that a client receives that does not ask for them: who created and revoked a key, the claims of a token, and lists, which are always present
 * in JSON.
 */
const OF_KEYS = ["created_by", "revoked_by", "rate_limits", "quotas"];
const OF_VERDICTS = ["missing_scopes", "limits"];
const NEW = {
  issued: [...ISSUED, ...OF_KEYS, "restricted_to_actor_ids", "previous_secrets"],
  imported: [...KEY, ...OF_KEYS],
  verdict: [...VERDICT, ...OF_VERDICTS],
  tokenVerdict: [...VERDICT, ...OF_VERDICTS, "claims"],
  token: [...TOKEN, "audience"],
  revoked: REVOKED,
};

function expectFields(message: Json, of: keyof typeof NEW): void {
  const unknown = Object.keys(message).filter((name) => !NEW[of].includes(name));
  expect({ of, unknown }).toEqual({ of, unknown: [] });
}

test("a response to a request of release 0.1 has no other fields than its own, apart from those that are named", async () => {
  const { secret, keyId, record } = await issue(suite.rest, { scopes: ["read"], metadata: { env: "prod" }, ttl: "1h" });
  const { rawKey, keyId: importedId, record: imported } = await importKey(suite.rest, { ttl: "1h" });
  expectFields(record, "issued");
  expectFields(imported, "imported");
  const batch = { requests: [{ raw_key: newRawKey(), name: "a key", actor_id: "actor_1" }] };
  const { results, ...counts } = succeeded(await suite.rest("POST", `${paths.imported}:batchCreate`, batch));
  expect(Object.keys(counts).sort()).toEqual(["failure_count", "success_count"]);
  expectFields(results[0].imported_api_key, "imported");

  const token = await derive(suite.rest, secret, { custom_claims: { tenant: "t" } });
  expectFields(token, "token");
  for (const credential of [secret, rawKey, "unknown"]) expectFields(await verify(suite.rest, credential), "verdict");
  const verdict = await verify(suite.rest, token.token);
  expectFields(verdict, "tokenVerdict");
  expect({ missing: verdict.missing_scopes, claims: verdict.claims }).toEqual({ missing: [], claims: { tenant: "t" } });

  for (const [path, id, list, of] of [
    [paths.issued, keyId, "issued_api_keys", "issued"],
    [paths.imported, importedId, "imported_api_keys", "imported"],
  ] as const) {
    expectFields(succeeded(await suite.rest("GET", `${path}/${id}`)), of);
    expectFields(succeeded(await suite.rest("PATCH", `${path}/${id}`, { name: "renamed" })), of);
    const page = succeeded(await suite.rest("GET", path));
    expect(Object.keys(page).sort()).toEqual([list, "next_page_token"]);
    for (const one of page[list]) expectFields(one, of);
  }
  const rotated = succeeded(await suite.rest("POST", `${paths.issued}/${keyId}:rotate`, {}));
  expect(Object.keys(rotated).sort()).toEqual(["issued_api_key", "secret"]);
  expectFields(rotated.issued_api_key, "issued");
  expectFields(await revoke(suite.rest, keyId, { revocation_description: "leaked" }), "revoked");
  expectFields(succeeded(await suite.rest("GET", `${paths.issued}/${keyId}`)), "issued");
  const ownRevocation = { credential: rawKey, reason: "REVOCATION_REASON_SUPERSEDED" };
  expectFields(succeeded(await suite.rest("POST", paths.selfRevoke, ownRevocation)), "revoked");
});
