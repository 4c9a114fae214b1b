import { randomUUID } from "node:crypto";
import { answered, plain, reasonOf, refused, verify } from "./keyhold.ts";
import type { Step } from "./tap.ts";

const KEYS = "/v2alpha1/admin/importedApiKeys";
const KEY = "/v2alpha1/admin/importedApiKeys/{key_id}";

export async function importedKeys(ok: Step): Promise<void> {
  const actor_id = `typescript-${randomUUID()}`;
  const [first, second] = [`legacy-1-${actor_id}`, `legacy-2-${actor_id}`];
  const request = (raw_key: string) => ({ raw_key, name: "typescript", actor_id, scopes: ["read"] });

  const created = await answered(plain.POST(KEYS, { body: request(first) }));
  ok("import", created.status === "KEY_STATUS_ACTIVE" && (await verify(first)).is_valid, created);
  const got = await answered(plain.GET(KEY, { params: { path: { key_id: created.key_id } } }));
  ok("get", got.actor_id === actor_id && got.scopes.join() === "read", got);

  const batch = { requests: [request(second), request(first)] };
  const result = await answered(plain.POST("/v2alpha1/admin/importedApiKeys:batchCreate", { body: batch }));
  const isTold = result.results[1]?.error_code === "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS";
  ok("a batch imports what it can", result.success_count === 1 && result.failure_count === 1 && isTold, result);
  const path = { key_id: result.results[0]?.imported_api_key?.key_id ?? "" };

  const query = { filter: `actor_id="${actor_id}"` };
  const page = await answered(plain.GET(KEYS, { params: { query } }));
  ok("list", page.imported_api_keys.length === 2, page);
  const params = { path, query: { update_mask: "name" } };
  const renamed = await answered(plain.PATCH(KEY, { params, body: { name: "renamed" } }));
  const kept = renamed.name === "renamed" && renamed.scopes.join() === "read";
  ok("an update of the name keeps the scopes", kept, renamed);

  const itself = await answered(
    plain.POST("/v2alpha1/apiKeys:selfRevoke", {
      body: { credential: first, reason: "REVOCATION_REASON_SUPERSEDED" },
    }),
  );
  ok("a key revokes itself", itself.key_id === created.key_id, itself);
  await answered(
    plain.POST("/v2alpha1/admin/importedApiKeys/{key_id}:revoke", {
      params: { path },
      body: { reason: "REVOCATION_REASON_AFFILIATION_CHANGED", revocation_description: "left" },
    }),
  );
  const revoked = await answered(plain.GET(KEY, { params: { path } }));
  const isRecorded =
    revoked.revocation_reason === "REVOCATION_REASON_AFFILIATION_CHANGED" && revoked.revocation_description === "left";
  ok("revoke with reason and description", isRecorded, revoked);

  await answered(plain.DELETE(KEY, { params: { path } }));
  const gone = await refused(plain.GET(KEY, { params: { path } }));
  ok("delete", gone.code === 404 && reasonOf(gone) === "API_KEY_NOT_FOUND", gone);
}
