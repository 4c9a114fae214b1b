import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AuditEvent } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../lib/json.ts";
import { restJson } from "../rest-json.ts";

/** The version of the schema: the first that has all these attributes. Later ones only add to them. */
const VERSION = "1.1.0";

/** API Activity of the category Application Activity: https://schema.ocsf.io/1.1.0/classes/api_activity */
const [CATEGORY, CLASS] = [6, 6003];

const OTHER = 99;

/** Ids of activities by the verb of an action. A call that was denied may have been any. */
const ACTIVITIES: Readonly<Record<string, number>> = {
  ...{ denied: 0, issued: 1, imported: 1, created: 1, deleted: 4, truncated: 4, pruned: 4 },
  ...{ expiring: OTHER, expired: OTHER, exceeded: OTHER, checkpoint: OTHER },
};

/** Every other action changes something. */
const UPDATE = 3;

/** Returns an event as API Activity of the Open Cybersecurity Schema Framework. What has no attribute there is `unmapped`. */
export function apiActivity(event: AuditEvent): JsonObject {
  const { seq, time, action, keyId, resourceId, caller, peerIp, clientIp } = event;
  const [type = "", verb = ""] = action.split(".");
  const activity = ACTIVITIES[verb] ?? UPDATE;
  const [service = "", operation = action] = event.rpc.split("/");
  const ip = clientIp || peerIp;
  const uid = keyId || resourceId;
  const attributes = withoutEmpty({
    ...{ category_uid: CATEGORY, class_uid: CLASS, activity_id: activity, type_uid: CLASS * 100 + activity },
    activity_name: activity === OTHER ? verb : "",
    ...{ severity_id: 1, severity: "Informational" },
    ...(verb === "denied" ? { status_id: 2, status: "Failure" } : { status_id: 1, status: "Success" }),
    status_detail: event.reason,
    time: time === undefined ? 0 : timestampMs(time),
    message: action,
    metadata: {
      version: VERSION,
      product: { name: "Keyhold", vendor_name: "Keyhold" },
      ...{ uid: String(seq), sequence: Number(seq) },
      ...{ log_name: "audit", event_code: action, correlation_uid: event.callId },
    },
    actor: {
      user: { name: caller?.name ?? "", uid: caller?.subject ?? "", credential_uid: caller?.keyId ?? "" },
      idp: { name: caller?.issuer ?? "" },
    },
    api: { operation, service: { name: service }, request: { uid: event.callId } },
    // A command on the database has no address.
    src_endpoint: {
      ip,
      name: ip ? "" : event.node || "database",
      intermediate_ips: [peerIp].filter((other) => other !== ip && other !== ""),
    },
    http_request: { user_agent: event.userAgent },
    resources: uid === "" ? [] : [withoutEmpty({ uid, type, owner: { uid: event.actorId } })],
  });
  const { changes = [] } = restJson(event);
  const rest = withoutEmpty({ caller_method: caller?.method ?? "", request_id: event.requestId, node: event.node });
  return { ...attributes, unmapped: { changes, ...rest } };
}

/** Returns the object without empty texts, lists and objects, at any depth: an absent attribute is not an empty one. */
function withoutEmpty(object: JsonObject): JsonObject {
  const entries = Object.entries(object).map(
    ([name, value]) => [name, isJsonObject(value) ? withoutEmpty(value) : value] as const,
  );
  return Object.fromEntries(entries.filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: JsonValue): boolean {
  return value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}
