import { randomUUID } from "node:crypto";
import { ErrorReason, KeyStatus, RevocationReason, TokenAlgorithm } from "./generated/schema.ts";
import { answered, keyhold, reasonOf, refused, type Schemas, verdicts, verify } from "./keyhold.ts";
import type { Step } from "./tap.ts";

const KEYS = "/v2alpha1/admin/issuedApiKeys";
const KEY = "/v2alpha1/admin/issuedApiKeys/{key_id}";

export async function lifeOfAKey(ok: Step): Promise<void> {
  const actor_id = `typescript-${randomUUID()}`;
  const body = { name: "typescript", actor_id, scopes: ["read", "deploy"], ttl: "90d", metadata: { env: "prod" } };
  const { issued_api_key: key, secret = "" } = await answered(keyhold.POST(KEYS, { body }));
  ok("issue", secret !== "" && key.status === KeyStatus.KEY_STATUS_ACTIVE, key);

  const path = { key_id: key.key_id };
  const got = await answered(keyhold.GET(KEY, { params: { path } }));
  ok("get", got.actor_id === actor_id && got.metadata.env === "prod" && got.expire_time !== undefined, got);

  const query = { page_size: 10, filter: `actor_id="${actor_id}" AND status=KEY_STATUS_ACTIVE` };
  const page = (await answered(keyhold.GET(KEYS, { params: { query } }))).issued_api_keys;
  ok("list with a filter", page.length === 1 && page[0]?.key_id === key.key_id, page);

  const update = async (update_mask: string, change: { name?: string; scopes?: string[] }) =>
    answered(keyhold.PATCH(KEY, { params: { path, query: { update_mask } }, body: change }));
  const renamed = await update("name", { name: "renamed" });
  const kept = renamed.scopes.join() === "read,deploy" && renamed.metadata.env === "prod";
  ok("an update of the name keeps scopes and metadata", renamed.name === "renamed" && kept, renamed);

  const verdict = await verify(secret);
  ok("verify", verdict.is_valid && verdict.key_id === key.key_id && verdict.scopes.length === 2, verdict);

  const jwt = await derive({
    credential: secret,
    algorithm: TokenAlgorithm.TOKEN_ALGORITHM_JWT,
    ttl: "10m",
    scopes: ["read"],
    custom_claims: { job: "nightly" },
  });
  ok("derive a JWT", jwt.claims?.job === "nightly" && (await verify(jwt.token)).scopes.join() === "read", jwt);
  const macaroon = await derive({ credential: secret, algorithm: TokenAlgorithm.TOKEN_ALGORITHM_MACAROON });

  const rotated = await answered(
    keyhold.POST("/v2alpha1/admin/issuedApiKeys/{key_id}:rotate", { params: { path }, body: { grace_period: "1h" } }),
  );
  const all = [secret, rotated.secret, jwt.token, macaroon.token];
  const found = await verdicts(all);
  const name = "after a rotation with a grace period, both secrets and both tokens verify";
  ok(name, found === "valid valid valid valid", found);

  const cleared = await update("scopes", { scopes: [] });
  ok("scopes are cleared deliberately", cleared.scopes.length === 0 && cleared.metadata.env === "prod", cleared);

  const revocation = {
    reason: RevocationReason.REVOCATION_REASON_KEY_COMPROMISE,
    revocation_description: "found in a log",
  };
  const revoke = () => keyhold.POST("/v2alpha1/admin/apiKeys/{key_id}:revoke", { params: { path }, body: revocation });
  await answered(revoke());
  const revoked = await answered(keyhold.GET(KEY, { params: { path } }));
  const isRecorded =
    revoked.revocation_reason === revocation.reason && revoked.revocation_description === "found in a log";
  ok("revoke with reason and description", revoked.status === KeyStatus.KEY_STATUS_REVOKED && isRecorded, revoked);
  const after = await verdicts(all);
  ok("all are revoked at once", after === Array(4).fill("VERIFICATION_ERROR_REVOKED").join(" "), after);

  const again = await refused(revoke());
  ok("a revoked key is not revoked again", reasonOf(again) === ErrorReason.API_KEY_ALREADY_REVOKED, again);
}

async function derive(body: Schemas["DeriveTokenRequest"]): Promise<Schemas["DerivedToken"]> {
  return (await answered(keyhold.POST("/v2alpha1/admin/apiKeys:derive", { body }))).token;
}
