import { type DescMessage, type DescMethodUnary, fromJson } from "@bufbuild/protobuf";
import { ActorsService } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { CallersService } from "../../../gen/keyhold/v2alpha1/callers_pb.js";
import { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { HmacKeysService } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { KeyPagesService } from "../../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { SelfServiceService } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { WebhookEndpointsService } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { type Answer, type Json, paths, type RestClient, restClient } from "../rest.ts";
import { type CallRpc, detailTypes, messageJson, type Protocol, type RequestHeaders, requestJson } from "./call.ts";

interface RestRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: Record<string, Json>;
  readonly body?: Json;
}

/** Returns the HTTP form of a request in JSON. */
type Route = (request: Json) => RestRequest;

const { method: issued } = IssuedApiKeysService;
const { method: imported } = ImportedApiKeysService;
const { method: hmacKeys } = HmacKeysService;
const { method: keys } = ApiKeysService;
const { method: audit } = AuditService;
const { method: usage } = UsageService;
const { method: actors } = ActorsService;
const { method: webhooks } = WebhookEndpointsService;

const post = (path: string, body: Json): RestRequest => ({ method: "POST", path, body });

/** A call on one key, of either kind or of that of the collection. */
const postTo =
  (verb: string): Route =>
  ({ key_id, collection = "apiKeys", ...body }) =>
    post(`/v2alpha1/admin/${collection}/${key_id}:${verb}`, body);

/** The path of a webhook endpoint. */
const actor = ({ actor_id }: Json) => `${paths.actors}/${encodeURIComponent(actor_id)}`;
const webhook = ({ endpoint_id }: Json) => `${paths.webhookEndpoints}/${endpoint_id}`;

/** The specification's table of endpoints, written by hand to check the routes that the server derives from the protos. */
const ROUTES: ReadonlyMap<DescMethodUnary, Route> = new Map<DescMethodUnary, Route>([
  [issued.createIssuedApiKey, (body) => post(paths.issued, body)],
  [issued.getIssuedApiKey, ({ key_id }) => ({ method: "GET", path: `${paths.issued}/${key_id}` })],
  [issued.listIssuedApiKeys, (query) => ({ method: "GET", path: paths.issued, query })],
  [
    issued.updateIssuedApiKey,
    ({ issued_api_key, update_mask }) => ({
      method: "PATCH",
      path: `${paths.issued}/${issued_api_key.key_id}`,
      query: { update_mask },
      body: { issued_api_key },
    }),
  ],
  [issued.rotateIssuedApiKey, ({ key_id, ...body }) => post(`${paths.issued}/${key_id}:rotate`, body)],
  [issued.endGracePeriod, ({ key_id, ...body }) => post(`${paths.issued}/${key_id}:endGrace`, body)],
  [imported.createImportedApiKey, (body) => post(paths.imported, body)],
  [imported.batchCreateImportedApiKeys, (body) => post(`${paths.imported}:batchCreate`, body)],
  [imported.getImportedApiKey, ({ key_id }) => ({ method: "GET", path: `${paths.imported}/${key_id}` })],
  [imported.listImportedApiKeys, (query) => ({ method: "GET", path: paths.imported, query })],
  [
    imported.updateImportedApiKey,
    ({ imported_api_key, update_mask }) => ({
      method: "PATCH",
      path: `${paths.imported}/${imported_api_key.key_id}`,
      query: { update_mask },
      body: imported_api_key,
    }),
  ],
  [imported.deleteImportedApiKey, ({ key_id }) => ({ method: "DELETE", path: `${paths.imported}/${key_id}` })],
  [hmacKeys.createHmacKey, (body) => post(paths.hmacKeys, body)],
  [hmacKeys.listHmacKeys, () => ({ method: "GET", path: paths.hmacKeys })],
  [hmacKeys.deleteHmacKey, ({ hmac_key_id }) => ({ method: "DELETE", path: `${paths.hmacKeys}/${hmac_key_id}` })],
  [audit.listAuditEvents, (query) => ({ method: "GET", path: paths.auditEvents, query })],
  [audit.getAuditEvent, ({ seq = "0" }) => ({ method: "GET", path: `${paths.auditEvents}/${seq}` })],
  [audit.getAuditCheckpoint, () => ({ method: "GET", path: paths.auditCheckpoint })],
  [audit.getAuditProof, (query) => ({ method: "GET", path: paths.auditProof, query })],
  [usage.queryUsage, (query) => ({ method: "GET", path: paths.usage, query })],
  [usage.getKeyUsage, ({ key_id, ...query }) => ({ method: "GET", path: `${paths.usage}/${key_id}`, query })],
  [actors.getActor, (request) => ({ method: "GET", path: actor(request) })],
  [actors.listActors, (query) => ({ method: "GET", path: paths.actors, query })],
  [
    actors.updateActor,
    ({ actor: resource, update_mask }) => ({
      method: "PATCH",
      path: actor(resource),
      body: { actor: resource, ...(update_mask && { update_mask }) },
    }),
  ],
  [actors.adjustActorQuota, ({ actor_id, ...body }) => post(`${actor({ actor_id })}:adjustQuota`, body)],
  [actors.deleteActor, (request) => ({ method: "DELETE", path: actor(request) })],
  [webhooks.createWebhookEndpoint, (body) => post(paths.webhookEndpoints, body)],
  [webhooks.getWebhookEndpoint, (request) => ({ method: "GET", path: webhook(request) })],
  [webhooks.listWebhookEndpoints, () => ({ method: "GET", path: paths.webhookEndpoints })],
  [
    webhooks.updateWebhookEndpoint,
    ({ webhook_endpoint, update_mask }) => ({
      method: "PATCH",
      path: webhook(webhook_endpoint),
      query: { update_mask },
      body: webhook_endpoint,
    }),
  ],
  [webhooks.deleteWebhookEndpoint, (request) => ({ method: "DELETE", path: webhook(request) })],
  [
    webhooks.rotateWebhookEndpointSecret,
    ({ endpoint_id, ...body }) => post(`${webhook({ endpoint_id })}:rotateSecret`, body),
  ],
  [webhooks.sendTestWebhookEvent, (request) => post(`${webhook(request)}:sendTestEvent`, {})],
  [
    webhooks.listWebhookDeliveries,
    ({ endpoint_id, ...query }) => ({ method: "GET", path: `${webhook({ endpoint_id })}/deliveries`, query }),
  ],
  [
    webhooks.redeliverWebhook,
    ({ delivery_id, ...request }) => post(`${webhook(request)}/deliveries/${delivery_id}:redeliver`, {}),
  ],
  [webhooks.replayWebhookEvents, ({ endpoint_id, ...body }) => post(`${webhook({ endpoint_id })}:replay`, body)],
  [KeyPagesService.method.createKeyPageSession, (body) => post(paths.keyPageSessions, body)],
  [CallersService.method.whoAmI, () => ({ method: "GET", path: paths.caller })],
  [keys.getApiKey, ({ key_id }) => ({ method: "GET", path: `${paths.keys}/${key_id}` })],
  [keys.deriveToken, (body) => post(`${paths.keys}:derive`, body)],
  [keys.verifyApiKey, (body) => post(`${paths.keys}:verify`, body)],
  [keys.listApiKeys, (query) => ({ method: "GET", path: paths.keys, query })],
  [keys.explainApiKey, (body) => post(`${paths.keys}:explain`, body)],
  [keys.batchVerifyApiKeys, (body) => post(`${paths.keys}:batchVerify`, body)],
  [keys.revokeApiKey, postTo("revoke")],
  [keys.disableApiKey, postTo("disable")],
  [keys.enableApiKey, postTo("enable")],
  [keys.adjustQuota, postTo("adjustQuota")],
  [keys.bulkRevokeApiKeys, (body) => post(`${paths.keys}:bulkRevoke`, body)],
  [keys.bulkDisableApiKeys, (body) => post(`${paths.keys}:bulkDisable`, body)],
  [SelfServiceService.method.selfRevokeApiKey, (body) => post(paths.selfRevoke, body)],
  [DerivedKeysService.method.getJwks, () => ({ method: "GET", path: paths.jwks })],
]);

/** Returns whether the specification has a path for the RPC. */
export function hasPath(method: DescMethodUnary): boolean {
  return ROUTES.has(method);
}

/** REST over fetch. */
export function restProtocol(url: string): Protocol {
  const client = restClient({ url });
  return { name: "REST", call: restCall(client), close: () => {} };
}

/** HTTP statuses of the codes that differ from those of google.rpc.Code. */
const STATUSES: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  FAILED_PRECONDITION: 409,
  ABORTED: 409,
  RESOURCE_EXHAUSTED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

function isStatusOf(name: string, http: number): boolean {
  // A body over the limit has its own HTTP status.
  return http === STATUSES[name] || (name === "RESOURCE_EXHAUSTED" && http === 413);
}

export function restCall(client: RestClient): CallRpc {
  return async (method, request, headers) => {
    const answer = await send(client, method, requestJson(method.input, request), headers);
    if (answer.status === 200) {
      const message = fromJson(method.output, answer.body, { ignoreUnknownFields: false });
      return { ok: true, message, headers: answer.headers };
    }
    const { code, message, status, details, ...more } = answer.body.error;
    if (code !== answer.status || !isStatusOf(status, code) || Object.keys(more).length > 0) {
      throw new Error(`HTTP ${answer.status} with ${answer.text}`);
    }
    return { ok: false, code: status, message, details: readDetails(details), headers: answer.headers };
  };
}

function send(
  client: RestClient,
  rpc: DescMethodUnary,
  json: Json,
  headers: RequestHeaders | undefined,
): Promise<Answer> {
  const route = ROUTES.get(rpc);
  if (route === undefined) throw new Error(`${rpc} has no path`);
  const { method, path, query = {}, body } = route(json);
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return client(method, search === "" ? path : `${path}?${search}`, body, { ...headers });
}

/** Returns details in JSON with `@type` by type name, parsed strictly, so that only usable fields are compared. */
function readDetails(details: readonly Json[]): Json {
  return Object.fromEntries(
    details.map(({ "@type": url, ...json }) => {
      const type = String(url).replace("type.googleapis.com/", "");
      const desc: DescMessage | undefined = detailTypes.getMessage(type);
      if (desc === undefined) throw new Error(`a detail of the unknown type ${url}`);
      return [type, messageJson(desc, fromJson(desc, json, { ignoreUnknownFields: false }))];
    }),
  );
}
