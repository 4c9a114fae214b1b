import { isDeepStrictEqual } from "node:util";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { fromJson, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  AuditCallerSchema,
  AuditEventSchema,
  type AuditService,
  type WatchAuditEventsResponseSchema,
} from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import type { AuditEvent, CallRecord, RecordedRow } from "../../audit/event.ts";
import type { Watched } from "../../audit/feed.ts";
import { parseEventFilter } from "../../audit/filter.ts";
import { getEvent, listEvents, parseEventPage } from "../../audit/log.ts";
import { Prover, requireWithin } from "../../audit/tree/proof.ts";
import { currentHead, readEntry } from "../../audit/tree/tree.ts";
import { checkAll, invalidArgument } from "../../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../lib/json.ts";
import { pageSizeOf } from "../../paging/page-request.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { timestamp } from "./key-resources.ts";

/** Events of all actors are in one log: a caller that may manage the keys of some actors only must not read those of others. */
export const READ_AUDIT_LOG = "read the audit log";

export const audit: ServiceRows<typeof AuditService> = {
  listAuditEvents: {
    implement:
      ({ audit }) =>
      (request) => {
        const page = parseEventPage(audit, request);
        return async () => {
          const { items, nextPageToken } = await listEvents(audit, page, eventSize);
          return { auditEvents: items.map(auditEvent), nextPageToken };
        };
      },
    policy: "keyhold:audit",
    unrestricted: READ_AUDIT_LOG,
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  getAuditEvent: {
    implement:
      ({ audit }) =>
      ({ seq }) =>
      async () =>
        auditEvent(await getEvent(audit, Number(seq))),
    policy: "keyhold:audit",
    unrestricted: READ_AUDIT_LOG,
    idempotency: "no side effects",
  },
  getAuditCheckpoint: {
    implement:
      ({ auditTree }) =>
      () =>
      async () => {
        const { checkpoint, key } = await currentHead(auditTree);
        return { checkpoint, verifierKey: key.verifierKey };
      },
    policy: "keyhold:audit",
    unrestricted: READ_AUDIT_LOG,
    idempotency: "no side effects",
  },
  getAuditProof: {
    implement:
      ({ auditTree }) =>
      ({ seq, firstSize, treeSize }) => {
        if ((seq === undefined) === (firstSize === undefined))
          throw invalidArgument("seq", "either seq or first_size is required", "FIELD_REQUIRED");
        return async () => {
          const { size } = await currentHead(auditTree);
          const end = Number(treeSize) || size;
          requireWithin(end, size);
          const prover = new Prover(auditTree.store);
          const proof =
            seq === undefined ? prover.consistency(Number(firstSize), end) : prover.inclusion(Number(seq), end);
          const hashes = (await proof).map((hash) => Buffer.from(hash).toString("base64"));
          const entry = seq === undefined ? "" : Buffer.from(await readEntry(auditTree, Number(seq))).toString();
          return { treeSize: BigInt(end), entry, hashes };
        };
      },
    policy: "keyhold:audit",
    unrestricted: READ_AUDIT_LOG,
    idempotency: "no side effects",
  },
  watchAuditEvents: {
    implement:
      ({ audit, auditFeed }) =>
      ({ startSeq, resumeToken, filter }) => {
        const [start, matching] = checkAll(
          () => (resumeToken === "" ? startSeq : parseResumeToken(resumeToken)),
          () => parseEventFilter(filter, audit.clock.now),
        );
        return (_principal, _call, signal) =>
          watchResponses(auditFeed.watch(start === undefined ? null : Number(start), matching, signal));
      },
    policy: "keyhold:audit",
    unrestricted: READ_AUDIT_LOG,
    idempotency: "no side effects",
  },
};

/** The position of the next event. */
function parseResumeToken(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw invalidArgument("resume_token", "must be a resume_token that the stream has sent", "VALUE_NOT_ALLOWED");
}

async function* watchResponses(
  all: AsyncIterable<Watched>,
): AsyncGenerator<MessageInitShape<typeof WatchAuditEventsResponseSchema>> {
  for await (const { event, nextSeq } of all) {
    const resumeToken = String(nextSeq);
    yield event === null ? { resumeToken } : { auditEvent: auditEvent(event), resumeToken };
  }
}

/** Returns the resource of an event. */
export function auditEvent(event: AuditEvent): MessageInitShape<typeof AuditEventSchema> {
  return {
    ...textsOf(event),
    seq: BigInt(event.seq),
    time: timestamp(event.time),
    ...(event.call.caller !== "" && { caller: callerOf(event.call) }),
    changes: changesOf(event).map(({ field, before, after }) => ({
      field,
      before: wireValue(before),
      after: wireValue(after),
    })),
  };
}

/**
 * Returns what `auditEventJson` returns for the resource of an event, in a quarter of the time. The digest of an event is made over this: what it
 * returns for a stored event must never change.
 */
export function storedEventJson(event: AuditEvent): JsonObject {
  const changes = changesOf(event);
  return {
    ...named(AuditEventSchema, textsOf(event)),
    // ProtoJSON omits 0, and a fraction of zero.
    ...(event.seq > 0 && { seq: String(event.seq) }),
    time: event.time.toISOString().replace(".000Z", "Z"),
    ...(event.call.caller !== "" && { caller: named(AuditCallerSchema, callerOf(event.call)) }),
    ...(changes.length > 0 && { changes }),
  };
}

/** Returns an event as JSON without empty fields. */
export function auditEventJson(event: MessageShape<typeof AuditEventSchema>): JsonObject {
  const json = toJson(AuditEventSchema, event, { useProtoFieldName: true });
  if (!isJsonObject(json)) throw new TypeError("an event is not a JSON object");
  return json;
}

/** Returns the fields of an event that are strings. */
function textsOf(event: AuditEvent) {
  const { call } = event;
  return {
    action: event.action,
    keyId: event.keyId ?? "",
    actorId: event.actorId ?? "",
    resourceId: event.resourceId ?? "",
    rpc: call.rpc ?? "",
    peerIp: call.peer_ip ?? "",
    clientIp: call.client_ip ?? "",
    userAgent: call.user_agent ?? "",
    callId: call.call_id ?? "",
    requestId: call.request_id ?? "",
    node: call.node ?? "",
    reason: reasonOf(event),
    salt: event.salt ?? "",
  };
}

function callerOf({ caller, method, subject, key_id = "", issuer = "" }: CallRecord) {
  return { name: caller, method, subject, keyId: key_id, issuer };
}

/** Returns the strings that are not empty, by the names of the fields in the definition of the message. */
function named({ fields }: DescMessage, texts: Readonly<Record<string, string>>): JsonObject {
  const json: JsonObject = {};
  for (const { localName, name } of fields) {
    const text = texts[localName] ?? "";
    if (text !== "") json[name] = text;
  }
  return json;
}

/** Fields that have another path in the API than their column. */
const FIELDS: Readonly<Record<string, string>> = { allowed_cidrs: "ip_restriction.allowed_cidrs" };

interface Change extends JsonObject {
  readonly field: string;
}

function changesOf({ before, after }: AuditEvent): Change[] {
  const changes: Change[] = [];
  for (const column of Object.keys({ ...before, ...after })) {
    const [was, becomes] = [recordedValue(column, before), recordedValue(column, after)];
    // A column that is NULL in a row that was added or deleted, or was recorded with another that has changed.
    if (was === becomes || (typeof was === "object" && isDeepStrictEqual(was, becomes))) continue;
    const field = FIELDS[column] ?? column;
    changes.push({ field, ...(was !== null && { before: was }), ...(becomes !== null && { after: becomes }) });
  }
  return changes;
}

/** Times are in UTC; PostgreSQL writes that as an offset. */
function recordedValue(column: string, row: RecordedRow | null): JsonValue {
  const value = row?.[column] ?? null;
  const isTime = typeof value === "string" && column.endsWith("_time");
  return isTime ? value.replace("+00:00", "Z") : (value as JsonValue);
}

function wireValue(value: JsonValue | undefined) {
  return value === undefined ? undefined : fromJson(ValueSchema, value);
}

/** The stored reason of the change; the reason of the API has a prefix, which the description explains better. */
function reasonOf({ after }: AuditEvent): string {
  const reason = after?.revocation_description ?? after?.revocation_reason ?? after?.disable_reason ?? after?.reason;
  return typeof reason === "string" ? reason : "";
}

/** Returns an upper bound of the bytes of an event in a response: a field of JSON is longer than in Protobuf. */
function eventSize({ before, after, call }: AuditEvent): number {
  return 1024 + 2 * Buffer.byteLength(JSON.stringify([before, after, call]));
}
