import { type DescMethodUnary, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { encodeCheck } from "../support/envoy-protos.ts";
import { describeRequest } from "../support/ext-authz.ts";
import { requestFrame } from "../support/stream-frames.ts";
import { frame, REST_ROUTES, type RestRoute, RPCS, rpcPath } from "../support/wire.ts";

/** An HTTP request of either version with a complete body. */
export interface HostileRequest {
  /** Description for the report. */
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  /** Without the fields that frame the body. */
  readonly fields: readonly Field[];
  readonly body: Buffer;
}

export type Field = readonly [name: string, value: string];

/** The keys that a call acts on. The texts of two targets have equal lengths, so that a cut falls on the same place in both. */
export interface CallTarget {
  readonly issuedKeyId: string;
  readonly importedKeyId: string;
  /** A credential to verify, derive from and revoke. */
  readonly credential: string;
  /** Prefix of each name and description that a change writes. */
  readonly mark: string;
  /** Suffix of each imported raw key, which makes it unique. */
  readonly suffix: string;
}

/** A protocol that calls RPCs by name. */
export interface Protocol {
  readonly name: string;
  readonly type: string;
  readonly isJson: boolean;
  /** Whether the message has a prefix of five bytes: flags and length. */
  readonly isFramed: boolean;
}

export const PROTOCOLS: readonly Protocol[] = [
  { name: "connect json", type: "application/json", isJson: true, isFramed: false },
  { name: "connect proto", type: "application/proto", isJson: false, isFramed: false },
  { name: "grpc", type: "application/grpc", isJson: false, isFramed: true },
  { name: "grpc json", type: "application/grpc+json", isJson: true, isFramed: true },
  { name: "grpc-web", type: "application/grpc-web+proto", isJson: false, isFramed: true },
  { name: "grpc-web json", type: "application/grpc-web+json", isJson: true, isFramed: true },
];

const SCOPES = ["orders.read", "orders.write"];

/** A valid request of each RPC as JSON. The field whose loss must be detected comes last. */
const SAMPLES: Readonly<Record<string, (target: CallTarget) => JsonObject>> = {
  CreateIssuedApiKey: ({ mark }) => ({ name: `${mark} key`, actor_id: "actor", scopes: SCOPES, ttl: "1h" }),
  GetIssuedApiKey: ({ issuedKeyId }) => ({ key_id: issuedKeyId }),
  ListIssuedApiKeys: () => ({ page_size: 2, filter: "status=KEY_STATUS_ACTIVE" }),
  UpdateIssuedApiKey: ({ issuedKeyId, mark }) => ({
    issued_api_key: { key_id: issuedKeyId, name: `${mark} name`, scopes: SCOPES, metadata: { team: "orders" } },
    update_mask: "name",
  }),
  RotateIssuedApiKey: ({ issuedKeyId }) => ({ key_id: issuedKeyId, grace_period: "1h" }),
  EndGracePeriod: ({ issuedKeyId }) => ({ key_id: issuedKeyId }),
  CreateImportedApiKey: ({ mark, suffix }) => importOf(mark, suffix),
  BatchCreateImportedApiKeys: ({ mark, suffix }) => ({
    requests: [0, 1, 2].map((item) => importOf(mark, `${suffix}-${item}`)),
  }),
  GetImportedApiKey: ({ importedKeyId }) => ({ key_id: importedKeyId }),
  ListImportedApiKeys: () => ({ page_size: 2, filter: 'name="k*"' }),
  UpdateImportedApiKey: ({ importedKeyId, mark }) => ({
    imported_api_key: { key_id: importedKeyId, name: `${mark} name`, scopes: SCOPES, metadata: { team: "orders" } },
    update_mask: "name",
  }),
  DeleteImportedApiKey: ({ importedKeyId }) => ({ key_id: importedKeyId }),
  // There can be only 100.
  CreateHmacKey: () => ({ hmac_key_id: "hmac-key", key: "the key of HMACs", encoding: "TEXT_ENCODING_UTF8" }),
  ListHmacKeys: () => ({}),
  DeleteHmacKey: () => ({ hmac_key_id: "hmac-key" }),
  DeriveToken: ({ credential }) => ({ credential, algorithm: "TOKEN_ALGORITHM_JWT", ttl: "60s" }),
  VerifyApiKey: ({ credential }) => ({ credential }),
  GetApiKey: ({ importedKeyId }) => ({ key_id: importedKeyId }),
  ListApiKeys: () => ({ page_size: 2, filter: 'name="k*" AND kind=KEY_KIND_ISSUED' }),
  DisableApiKey: ({ issuedKeyId, mark }) => ({ key_id: issuedKeyId, reason: `${mark} reason` }),
  AdjustQuota: ({ issuedKeyId }) => ({ key_id: issuedKeyId, name: "monthly", delta: 1 }),
  EnableApiKey: ({ issuedKeyId }) => ({ key_id: issuedKeyId }),
  ExplainApiKey: ({ credential }) => ({ credential, client_ip: "203.0.113.7", required_scopes: SCOPES }),
  BatchVerifyApiKeys: ({ credential }) => ({ requests: [{ credential }, { credential: "none" }] }),
  RevokeApiKey: ({ issuedKeyId, mark }) => ({
    key_id: issuedKeyId,
    reason: "REVOCATION_REASON_SUPERSEDED",
    revocation_description: `${mark} revocation`,
  }),
  BulkRevokeApiKeys: ({ issuedKeyId }) => ({ filter: `key_id="${issuedKeyId}"`, request_id: "once" }),
  BulkDisableApiKeys: ({ importedKeyId }) => ({ filter: `key_id="${importedKeyId}"`, expected_count: 1 }),
  SelfRevokeApiKey: ({ credential }) => ({ credential, reason: "REVOCATION_REASON_SUPERSEDED" }),
  GetJwks: () => ({}),
  ListAuditEvents: () => ({ page_size: 2, filter: 'action="key.*"' }),
  GetAuditEvent: () => ({ seq: "0" }),
  GetAuditCheckpoint: () => ({}),
  GetAuditProof: () => ({ tree_size: "1", seq: "0" }),
  QueryUsage: () => ({ group_by: ["key"], step: "1h", page_size: 2 }),
  GetKeyUsage: ({ issuedKeyId }) => ({ key_id: issuedKeyId, step: "1d" }),
  GetActor: () => ({ actor_id: "limited" }),
  ListActors: () => ({ page_size: 2 }),
  UpdateActor: () => ({
    actor: {
      ...{ actor_id: "limited", rate_limits: [{ name: "requests", quota: 60, window: "1m" }] },
      quotas: [{ name: "monthly", limit: 60, period: "QUOTA_PERIOD_MONTH" }],
    },
    update_mask: "rateLimits,quotas",
  }),
  AdjustActorQuota: () => ({ actor_id: "limited", name: "monthly", delta: 1 }),
  DeleteActor: () => ({ actor_id: "limited" }),
  // There can be only 100.
  CreateWebhookEndpoint: () => ({
    ...{ endpoint_id: "hooks", url: "https://hooks.invalid", event_types: ["signing_key.rotated"] },
  }),
  GetWebhookEndpoint: () => ({ endpoint_id: "hooks" }),
  ListWebhookEndpoints: () => ({}),
  UpdateWebhookEndpoint: ({ mark }) => ({
    webhook_endpoint: { endpoint_id: "hooks", description: `${mark} description` },
    update_mask: "description",
  }),
  DeleteWebhookEndpoint: () => ({ endpoint_id: "hooks" }),
  RotateWebhookEndpointSecret: () => ({ endpoint_id: "hooks", grace_period: "1h" }),
  SendTestWebhookEvent: () => ({ endpoint_id: "hooks" }),
  ListWebhookDeliveries: () => ({ endpoint_id: "hooks", page_size: 2 }),
  RedeliverWebhook: ({ issuedKeyId }) => ({ endpoint_id: "hooks", delivery_id: issuedKeyId }),
  ReplayWebhookEvents: () => ({ endpoint_id: "hooks", seq: "0" }),
  WhoAmI: () => ({}),
  CreateKeyPageSession: () => ({
    ...{ actor_id: "actor", permissions: ["KEY_PAGE_PERMISSION_CREATE"], allowed_scopes: SCOPES, max_ttl: "1h" },
    return_url: "https://app.invalid",
  }),
};

function importOf(mark: string, suffix: string): JsonObject {
  return { raw_key: `raw-key-${suffix}`, name: `${mark} key`, actor_id: "actor", scopes: SCOPES, ttl: "1h" };
}

/** Returns a valid request of this RPC as JSON. */
export function sampleOf({ name }: DescMethodUnary, target: CallTarget): JsonObject {
  const sample = SAMPLES[name];
  if (sample === undefined) throw new Error(`no sample request of ${name}`);
  return sample(target);
}

/** Creates a request for a target. */
export type MakeRequest = (target: CallTarget) => HostileRequest;

/** Each RPC on each of its REST paths and over each protocol, introspection, and what gateways ask. */
export const CALLS: readonly MakeRequest[] = [
  ({ credential }) =>
    request("forward auth", "GET", "/v2alpha1/forwardAuth", "", undefined, [["x-api-key", credential]]),
  ({ credential }) => checkCall(credential),
  ...["application/grpc", "application/connect+proto"].map((type) => (target: CallTarget) => streamCall(type, target)),
  ({ credential }) => introspection("introspect", new URLSearchParams({ token: credential }).toString()),
  ...REST_ROUTES.map((route) => (target: CallTarget) => restCall(route, target)),
  ...RPCS.flatMap((rpc) => PROTOCOLS.map((protocol) => (target: CallTarget) => rpcCall(rpc, protocol, target))),
  ...RPCS.filter(isReading).map((rpc) => (target: CallTarget) => connectGet(rpc, target)),
];

/** Returns a stream of some verifications, of which two have the same id. */
function streamCall(type: string, { credential }: CallTarget): HostileRequest {
  const { streamVerify } = ApiKeysService.method;
  const messages = [1, 2, 2, 0].map((id) => requestFrame({ id, request: { credential } }));
  return request(`${type} StreamVerify`, "POST", rpcPath(streamVerify), type, Buffer.concat(messages), [
    ["te", "trailers"],
  ]);
}

/** Returns what Envoy asks about a request with this credential. */
function checkCall(credential: string): HostileRequest {
  const asked = describeRequest({
    path: `/orders?key=${credential}`,
    headers: [["authorization", `Bearer ${credential}`]],
  });
  return request(
    "ext_authz",
    "POST",
    "/envoy.service.auth.v3.Authorization/Check",
    "application/grpc",
    frame(encodeCheck(asked)),
    [["te", "trailers"]],
  );
}

/** Returns the REST call: the path names the key, the body or the query has the other fields. */
export function restCall({ rpc, httpMethod, path }: RestRoute, target: CallTarget): HostileRequest {
  const idField = { DeleteHmacKey: "hmac_key_id", GetAuditEvent: "seq" }[rpc.name] ?? "key_id";
  const { [idField]: keyId = "", ...rest } = sampleOf(rpc, target);
  const [resource] = Object.values(rest).filter((value) => typeof value === "object" && "key_id" in (value ?? {}));
  const id = String(keyId || (resource as JsonObject | undefined)?.key_id || "");
  const name = `rest ${httpMethod} ${rpc.name}`;
  if (httpMethod === "GET" || httpMethod === "DELETE") {
    const query = new URLSearchParams(Object.entries(rest).map(([field, value]) => [field, String(value)]));
    return request(name, httpMethod, `${path(id)}${query.size === 0 ? "" : `?${query}`}`);
  }
  return request(name, httpMethod, path(id), "application/json", Buffer.from(JSON.stringify(rest)));
}

/** Returns the call over this protocol. */
export function rpcCall(rpc: DescMethodUnary, protocol: Protocol, target: CallTarget): HostileRequest {
  const { name, type, isJson, isFramed } = protocol;
  const json = sampleOf(rpc, target);
  const message = Buffer.from(isJson ? JSON.stringify(json) : toBinary(rpc.input, fromJson(rpc.input, json)));
  const fields: readonly Field[] = type.startsWith("application/grpc") ? [["te", "trailers"]] : [];
  return request(`${name} ${rpc.name}`, "POST", rpcPath(rpc), type, isFramed ? frame(message) : message, fields);
}

/** Returns the call over Connect with GET. */
export function connectGet(rpc: DescMethodUnary, target: CallTarget): HostileRequest {
  const query = new URLSearchParams({
    connect: "v1",
    encoding: "json",
    message: JSON.stringify(sampleOf(rpc, target)),
  });
  return request(`connect get ${rpc.name}`, "GET", `${rpcPath(rpc)}?${query}`);
}

function isReading({ idempotency }: DescMethodUnary): boolean {
  return idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

const FORM = "application/x-www-form-urlencoded";
const INTROSPECT = "/v2alpha1/introspect";

/** Forms that are no request, in Latin-1. */
const ODD_FORMS: readonly string[] = [
  ...["", "&", "=", "==", "token", "token=", "=token", "token=a&token=b"],
  ...["token=%", "token=%zz", "token=%ff", "\xff=\xff"],
  ...["token=%00", "token=%ed%a0%80", "%74oken=a&token=b", "__proto__=a", "token=a&__proto__=b&constructor=c"],
  ...["token=a&client_secret=b", "token=a&required_scopes=+", "token=a&audience=%0d%0a", '{"token":"a"}'],
  ...["&".repeat(16_000), "a&".repeat(8_000), Array.from({ length: 3_000 }, (_, place) => `${place}=`).join("&")],
  ...[`token=${"%41".repeat(5_000)}`, `token=${"a".repeat(100_000)}`, `${"+".repeat(16_000)}=a`],
];

/** Requests to other paths of the server, known and unknown. */
export const OTHER_REQUESTS: readonly HostileRequest[] = makeOtherRequests();

function makeOtherRequests(): HostileRequest[] {
  const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const listServices = frame(Buffer.from([0x3a, 0]));
  const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "TRACE"];
  const paths = ["/", "/nope", "/docs", "/openapi.json", "/health/alive", "/health/ready", "/v2alpha1/admin/nope"];
  return [
    ...paths.flatMap((path) => methods.map((method) => request(`${method} ${path}`, method, path))),
    ...["PUT", "DELETE", "QUERY", "OPTIONS", "HEAD"].map((method) =>
      request(`${method} rpc`, method, "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey"),
    ),
    request("unknown rpc", "POST", "/keyhold.v2alpha1.ApiKeysService/Nope", "application/json", Buffer.from("{}")),
    request("unknown grpc", "POST", "/keyhold.v2alpha1.Nope/Nope", "application/grpc", frame(Buffer.alloc(0))),
    request("reflection", "POST", reflection, "application/grpc", listServices),
    request("reflection grpc-web", "POST", reflection, "application/grpc-web", listServices),
    request("reflection connect", "POST", reflection, "application/connect+proto", listServices),
    request("health check", "POST", "/grpc.health.v1.Health/Check", "application/grpc", frame(Buffer.alloc(0))),
    request("health watch", "POST", "/grpc.health.v1.Health/Watch", "application/grpc-web", frame(Buffer.alloc(0)), [
      ["grpc-timeout", "20m"],
    ]),
    request("not json", "POST", "/nope", "application/json", Buffer.from("{")),
    request("form", "POST", "/", FORM, Buffer.from("a=b")),
    ...methods.map((method) => request(`${method} introspect`, method, INTROSPECT)),
    ...ODD_FORMS.map((form) => introspection("odd form", form)),
  ];
}

function introspection(kind: string, form: string): HostileRequest {
  return request(kind, "POST", INTROSPECT, FORM, Buffer.from(form, "latin1"));
}

function request(
  kind: string,
  method: string,
  path: string,
  type = "",
  body: Buffer = Buffer.alloc(0),
  more: readonly Field[] = [],
): HostileRequest {
  return { kind, method, path, fields: type === "" ? more : [["content-type", type], ...more], body };
}
