import type {
  Filter,
  IntegerComparison,
  Operator,
  PrefixComparison,
  PresenceComparison,
  StringComparison,
  TimeComparison,
  UuidComparison,
} from "../filter/expression.ts";
import { defineFields, type Rule } from "../filter/fields.ts";
import { parseFilter } from "../filter/parse.ts";
import { integerRule, prefixRule, stringRule, timeRule, uuidRule } from "../filter/rules.ts";
import type { AuditEvent, CallRecord } from "./event.ts";

/** The fields of an event that come from its call. */
export const CALL_FIELDS = [
  ...["caller", "rpc", "peer_ip", "client_ip", "call_id", "request_id", "node"],
] as const satisfies readonly (keyof CallRecord)[];

type CallField = (typeof CALL_FIELDS)[number];
type StringField = "action" | "actor_id" | "resource_id" | CallField;
type EventField = "seq" | "time" | "key_id" | StringField;

export type EventComparison =
  | IntegerComparison<"seq">
  | TimeComparison<"time">
  | UuidComparison<"key_id">
  | StringComparison<StringField>
  | PrefixComparison<"action">
  | PresenceComparison<EventField>;

export type EventFilter = Filter<EventComparison>;

const RULES: { readonly [F in EventField]: Rule<EventComparison> } = {
  seq: integerRule("seq"),
  time: timeRule("time"),
  action: prefixRule("action"),
  key_id: uuidRule("key_id"),
  actor_id: stringRule("actor_id"),
  resource_id: stringRule("resource_id"),
  caller: stringRule("caller"),
  rpc: stringRule("rpc"),
  peer_ip: stringRule("peer_ip"),
  client_ip: stringRule("client_ip"),
  call_id: stringRule("call_id"),
  request_id: stringRule("request_id"),
  node: stringRule("node"),
};

const FIELDS = defineFields(RULES, {
  resource: "an event",
  example: 'action="key.revoked"',
  wildcardField: "an action",
});

/** @example parseEventFilter('action="key.*" AND time > now() - "7d"', clock.now) */
export function parseEventFilter(text: string, now: () => number): EventFilter {
  return parseFilter(text, FIELDS, now);
}

/** Returns whether an event matches, as the condition of `postgres/audit/filter.ts` does. */
export function matches(filter: EventFilter, event: AuditEvent): boolean {
  switch (filter.node) {
    case "all":
      return true;
    case "and":
      return filter.operands.every((operand) => matches(operand, event));
    case "or":
      return filter.operands.some((operand) => matches(operand, event));
    case "not":
      return !matches(filter.operand, event);
    case "integer":
      return compare(filter.operator, event.seq - Number(filter.value));
    case "prefix":
      return event.action.startsWith(filter.value);
    case "present":
      return (fieldOf(event, filter.field) ?? "") !== "";
    default: {
      const value = fieldOf(event, filter.field);
      // By code point, like the collation "C".
      return value !== null && compare(filter.operator, Buffer.compare(Buffer.from(value), Buffer.from(filter.value)));
    }
  }
}

/** Returns a field as a text with the order of its values. */
function fieldOf(event: AuditEvent, field: EventField): string | null {
  switch (field) {
    case "seq":
      return String(event.seq);
    case "time":
      return event.time.toISOString().replace("Z", "000Z");
    case "action":
      return event.action;
    case "key_id":
      return event.keyId;
    case "actor_id":
      return event.actorId;
    case "resource_id":
      return event.resourceId;
    default:
      return event.call[field] ?? null;
  }
}

function compare(operator: Operator, order: number): boolean {
  if (order === 0) return operator.includes("=");
  return operator.startsWith(order < 0 ? "<" : ">");
}
