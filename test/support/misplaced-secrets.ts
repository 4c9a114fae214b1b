import { createHash } from "node:crypto";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { UNKNOWN_KEY_ID } from "./conformance.ts";
import { type Json, paths } from "./rest.ts";
import { RPCS } from "./wire.ts";

type OfSecret = (secret: string) => string;

/** A request with a misplaced secret. */
export type Place = readonly [place: string, method: string, path: OfSecret, body: OfSecret | null];

/** Places in which a secret may be sent by mistake. */
export const PLACES: readonly Place[] = [
  ["a key_id", "GET", (s) => `${paths.issued}/${s}`, null],
  ["a key_id to delete", "DELETE", (s) => `${paths.imported}/${s}`, null],
  ["a key_id to revoke", "POST", (s) => `${paths.keys}/${s}:revoke`, () => "{}"],
  ["a path", "GET", (s) => `/${s}`, null],
  ["a verb", "POST", (s) => `${paths.keys}/a:${s}`, () => "{}"],
  ["a collection", "POST", (s) => `/v2alpha1/admin/${s}/a:revoke`, () => "{}"],
  ["a malformed path", "GET", (s) => `${paths.issued}/${s}%zz`, null],
  ["a query", "GET", (s) => `${paths.issued}?credential=${s}`, null],
  ["a query of a body", "POST", (s) => `${paths.keys}:verify?credential=${s}`, () => "{}"],
  ["the name of a query field", "GET", (s) => `${paths.issued}?${s}=1`, null],
  ["the name of a query field of a body", "POST", (s) => `${paths.keys}:verify?${s}`, () => "{}"],
  ["a malformed query", "GET", (s) => `${paths.issued}?${s}=%zz`, null],
  ["a page size", "GET", (s) => `${paths.issued}?page_size=${s}`, null],
  ["a page token", "GET", (s) => `${paths.issued}?page_token=${s}`, null],
  ["a filter", "GET", (s) => `${paths.issued}?filter=${s}`, null],
  ["a field of a filter", "GET", (s) => `${paths.issued}?filter=${s}%3Da`, null],
  ["a value of a filter", "GET", (s) => `${paths.issued}?filter=status%3D${s}`, null],
  ["a filter with a function", "GET", (s) => `${paths.issued}?filter=hash(%22${s}%22)`, null],
  ["a filter that matches nothing", "GET", (s) => `${paths.issued}?filter=name%3D%22${s}%22`, null],
  ["an update mask", "PATCH", (s) => `${paths.issued}/${UNKNOWN_KEY_ID}?update_mask=${s}`, () => '{"name":"a"}'],
  ["a body", "POST", () => `${paths.keys}:verify`, (s) => s],
  ["a body that does not parse", "POST", () => `${paths.keys}:verify`, (s) => `{"credential": ${s}}`],
  ["a truncated body", "POST", () => `${paths.keys}:verify`, (s) => `{"credential": "${s}`],
  ["a JSON string", "POST", () => `${paths.keys}:verify`, (s) => `"${s}"`],
  ["the name of a field", "POST", () => `${paths.keys}:verify`, (s) => `{"${s}": 1}`],
  ["the name of a field, twice", "POST", () => `${paths.keys}:verify`, (s) => `{"${s}": 1, "${s}": 2}`],
  ["an unknown field", "POST", () => `${paths.keys}:verify`, (s) => `{"secret": "${s}"}`],
  ["an object for a credential", "POST", () => `${paths.keys}:verify`, (s) => `{"credential": {"${s}": "${s}"}}`],
  ["an enum", "POST", () => `${paths.keys}:derive`, (s) => `{"credential": "a", "algorithm": "${s}"}`],
  ["a duration", "POST", () => paths.issued, (s) => `{"name": "a", "actor_id": "a", "ttl": "${s}"}`],
  ["a grace period", "POST", () => `${paths.issued}/${UNKNOWN_KEY_ID}:rotate`, (s) => `{"grace_period": "${s}"}`],
  ["scopes that are not a list", "POST", () => paths.issued, (s) => `{"name": "a", "actor_id": "a", "scopes": "${s}"}`],
  ["a scope with a space", "POST", () => paths.issued, (s) => `{"name": "a", "actor_id": "a", "scopes": ["a ${s}"]}`],
  [
    "metadata that is not text",
    "POST",
    () => paths.issued,
    (s) => `{"name": "a", "actor_id": "a", "metadata": {"a": ["${s}"]}}`,
  ],
  [
    "a request id with a space",
    "POST",
    () => paths.issued,
    (s) => `{"name": "a", "actor_id": "a", "request_id": "a ${s}"}`,
  ],
  ["a name that is too long", "POST", () => paths.issued, (s) => `{"name": "${s.repeat(16)}", "actor_id": "a"}`],
  [
    "a description without its reason",
    "POST",
    () => `${paths.keys}/${UNKNOWN_KEY_ID}:revoke`,
    (s) => `{"revocation_description": "${s}"}`,
  ],
];

/** Headers that are not for credentials. */
export const HEADERS = [
  "x-api-key",
  "cookie",
  "x-request-id",
  "content-type",
  "content-encoding",
  "accept",
  "origin",
  "user-agent",
  "referer",
  "grpc-timeout",
  "connect-timeout-ms",
  "grpc-encoding",
  "connect-protocol-version",
  "traceparent",
  "if-none-match",
];

/** Keys and tokens of every kind. */
export interface TestKeys {
  readonly issued: Json;
  readonly imported: Json;
  readonly rawKey: string;
  readonly jwt: string;
  readonly macaroon: string;
}

/** The key of HMACs in `requests`. */
export const HMAC_SECRET = "the key of the HMACs of another system";

/** Returns the raw key whose hash `requests` imports, and that hash. */
export function hashedBy(newRawKey: string): { readonly rawKey: string; readonly hash: string } {
  const rawKey = `${newRawKey}-hashed`;
  return { rawKey, hash: createHash("sha256").update(rawKey).digest("hex") };
}

/** Returns the RPC with this name. */
export function rpc(name: string): DescMethodUnary {
  const found = RPCS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`unknown RPC ${name}`);
  return found;
}

/** Returns requests of every RPC; those that revoke or delete a key are last. */
export function requests(
  { issued, imported, rawKey: raw, jwt, macaroon }: TestKeys,
  newRawKey: string,
): [DescMethodUnary, Json][] {
  const { key_id } = issued.issued_api_key;
  const key = { name: "a key", actor_id: "actor_1" };
  const credentials = [issued.secret, raw, jwt, macaroon, `${issued.secret.slice(0, -1)}_`, `${jwt.slice(0, -2)}AA`];
  const hashed = hashedBy(newRawKey);
  const sha256 = { algorithm: "HASH_ALGORITHM_SHA256", value: hashed.hash, encoding: "TEXT_ENCODING_HEX" };
  const hmacKey = { hmac_key_id: "h", key: HMAC_SECRET, encoding: "TEXT_ENCODING_UTF8" };
  const limit = { name: "requests", quota: 60, window: "1m" };
  const endpoint_id = "hooks";
  const endpoint = { endpoint_id, url: "https://hooks.invalid", event_types: ["signing_key.rotated"] };
  const all: [name: string, request: Json][] = [
    ["CreateIssuedApiKey", { ...key, request_id: `r-${key_id}` }],
    ["CreateIssuedApiKey", { ...key, request_id: `r-${key_id}` }],
    ["CreateIssuedApiKey", { ...key, ttl: "forever" }],
    ["GetIssuedApiKey", { key_id }],
    ["ListIssuedApiKeys", { filter: 'actor_id="actor_1"', page_size: 5 }],
    ["UpdateIssuedApiKey", { issued_api_key: { key_id, name: "b key" }, update_mask: "name" }],
    ["CreateImportedApiKey", { ...key, raw_key: raw }],
    ["CreateImportedApiKey", { ...key, raw_key: issued.secret }],
    ["CreateImportedApiKey", { ...key, raw_key: jwt }],
    [
      "BatchCreateImportedApiKeys",
      { requests: [{ ...key, raw_key: newRawKey }, { ...key, raw_key: raw }, { raw_key: raw }] },
    ],
    ["BatchCreateImportedApiKeys", { requests: [{ ...key, raw_key: raw }] }],
    ["CreateImportedApiKey", { ...key, raw_key_hash: sha256 }],
    ["CreateImportedApiKey", { ...key, raw_key_hash: sha256 }],
    ["CreateImportedApiKey", { ...key, raw_key_hash: { ...sha256, encoding: "TEXT_ENCODING_BASE64" } }],
    ["CreateImportedApiKey", { ...key, raw_key_hash: { ...sha256, algorithm: "HASH_ALGORITHM_SHA512" } }],
    [
      "CreateImportedApiKey",
      { ...key, raw_key_hash: { ...sha256, algorithm: "HASH_ALGORITHM_HMAC_SHA256", hmac_key_id: raw } },
    ],
    ["CreateImportedApiKey", { ...key, raw_key_hash: { phc: `$5$${hashed.hash}` }, lookup_prefix: raw }],
    ["CreateImportedApiKey", { ...key, raw_key: raw, raw_key_hash: { ...sha256, prefix: raw, suffix: raw } }],
    ["VerifyApiKey", { credential: hashed.rawKey }],
    ["CreateHmacKey", hmacKey],
    ["CreateHmacKey", { ...hmacKey, key: `another ${HMAC_SECRET}` }],
    ["CreateHmacKey", { ...hmacKey, encoding: "TEXT_ENCODING_HEX" }],
    ["CreateHmacKey", { ...hmacKey, hmac_key_id: HMAC_SECRET }],
    ["ListHmacKeys", {}],
    ["DeleteHmacKey", { hmac_key_id: raw }],
    ["DeleteHmacKey", { hmac_key_id: HMAC_SECRET }],
    ["DeleteHmacKey", { hmac_key_id: "of-no-key" }],
    ["GetImportedApiKey", { key_id: imported.key_id }],
    ["ListImportedApiKeys", {}],
    ["UpdateImportedApiKey", { imported_api_key: { key_id: imported.key_id, metadata: { a: "b" } } }],
    ...credentials.map((credential): [string, Json] => ["VerifyApiKey", { credential }]),
    ...credentials.map((credential): [string, Json] => ["ExplainApiKey", { credential, required_scopes: ["x"] }]),
    ["ExplainApiKey", { key_id }],
    ["BatchVerifyApiKeys", { requests: credentials.map((credential) => ({ credential })) }],
    ...credentials.map((credential): [string, Json] => [
      "DeriveToken",
      { credential, algorithm: "TOKEN_ALGORITHM_JWT", custom_claims: { a: 1 } },
    ]),
    ["DeriveToken", { credential: jwt, algorithm: "TOKEN_ALGORITHM_MACAROON", scopes: ["write"] }],
    ["GetApiKey", { key_id: imported.key_id }],
    ["ListApiKeys", { filter: "kind=KEY_KIND_ISSUED", page_size: 5 }],
    ["DisableApiKey", { key_id, reason: "suspected leak" }],
    ["EnableApiKey", { key_id }],
    ["AdjustQuota", { key_id, name: "monthly", delta: 1 }],
    ["BulkRevokeApiKeys", { filter: "revoke_time:*", request_id: `bulk-${key_id}` }],
    ["BulkDisableApiKeys", { filter: "kind=KEY_KIND_ISSUED", validate_only: true }],
    ["ListAuditEvents", { filter: `key_id="${key_id}"` }],
    ["ListAuditEvents", { filter: `call_id="${raw}"`, page_token: raw }],
    ["GetAuditEvent", { seq: "0" }],
    ["GetAuditCheckpoint", {}],
    ["GetAuditProof", { seq: "0" }],
    ["QueryUsage", { key_id: raw, outcome: raw, step: raw }],
    ["QueryUsage", { actor_id: raw, page_token: raw }],
    ["QueryUsage", { group_by: ["key"] }],
    ["GetKeyUsage", { key_id }],
    ["GetKeyUsage", { key_id: raw }],
    ["UpdateActor", { actor: { actor_id: "limited", rate_limits: [limit] }, update_mask: "rateLimits" }],
    ["UpdateActor", { actor: { actor_id: "limited", rate_limits: [{ ...limit, name: raw }] } }],
    ["AdjustActorQuota", { actor_id: "limited", name: raw, delta: 1 }],
    ["AdjustActorQuota", { actor_id: raw, name: "monthly", delta: 1 }],
    ["GetActor", { actor_id: "limited" }],
    ["GetActor", { actor_id: raw }],
    ["ListActors", { page_token: raw }],
    ["ListActors", {}],
    ["UpdateActor", { actor: { actor_id: "kept", rate_limits: [limit] }, update_mask: "rateLimits" }],
    ["DeleteActor", { actor_id: "limited" }],
    ["DeleteActor", { actor_id: raw }],
    ["CreateWebhookEndpoint", endpoint],
    ["CreateWebhookEndpoint", { ...endpoint, endpoint_id: "other", url: `https://${raw}@hooks.invalid` }],
    ["CreateWebhookEndpoint", { ...endpoint, endpoint_id: "other", filter: raw }],
    ["GetWebhookEndpoint", { endpoint_id }],
    ["ListWebhookEndpoints", {}],
    ["UpdateWebhookEndpoint", { webhook_endpoint: { endpoint_id, description: "a description" } }],
    ["RotateWebhookEndpointSecret", { endpoint_id, grace_period: "1h" }],
    ["SendTestWebhookEvent", { endpoint_id }],
    ["ListWebhookDeliveries", { endpoint_id, page_token: raw }],
    ["ListWebhookDeliveries", { endpoint_id }],
    ["RedeliverWebhook", { endpoint_id, delivery_id: key_id }],
    ["ReplayWebhookEvents", { endpoint_id, seq: "0" }],
    ["DeleteWebhookEndpoint", { endpoint_id: raw }],
    ["WhoAmI", {}],
    ["CreateKeyPageSession", { actor_id: "kept", permissions: ["KEY_PAGE_PERMISSION_CREATE"], max_ttl: raw }],
    ["CreateKeyPageSession", { actor_id: "kept", allowed_scopes: [`keyhold:${raw}`], return_url: raw }],
    ["CreateKeyPageSession", { actor_id: "kept" }],
    ["GetJwks", {}],
    ["EndGracePeriod", { key_id }],
    ["RotateIssuedApiKey", { key_id, grace_period: "1h" }],
    ["RotateIssuedApiKey", { key_id, grace_period: "1 hour" }],
    ["SelfRevokeApiKey", { credential: jwt }],
    ["SelfRevokeApiKey", { credential: issued.secret, reason: "REVOCATION_REASON_SUPERSEDED" }],
    ["SelfRevokeApiKey", { credential: issued.secret }],
    ["RotateIssuedApiKey", { key_id }],
    ["RevokeApiKey", { key_id: imported.key_id }],
    ["VerifyApiKey", { credential: raw }],
    ["DeleteImportedApiKey", { key_id: imported.key_id }],
  ];
  return all.map(([name, request]) => [rpc(name), request]);
}
