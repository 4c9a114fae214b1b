import type {
  Filter,
  PrefixComparison,
  PresenceComparison,
  StringComparison,
  TimeComparison,
} from "../filter/expression.ts";
import { defineFields, type Rule } from "../filter/fields.ts";
import { parseFilter } from "../filter/parse.ts";
import { listRule, prefixRule, timeRule } from "../filter/rules.ts";

type LimitField = "rate_limits" | "quotas";
type TimeField = "create_time" | "update_time";
type ActorField = "actor_id" | LimitField | TimeField;

export type ActorComparison =
  | StringComparison<"actor_id">
  | PrefixComparison<"actor_id">
  | TimeComparison<TimeField>
  /** One of the limits has this name. */
  | { readonly node: "limit"; readonly field: LimitField; readonly name: string }
  | PresenceComparison<ActorField>;

export type ActorFilter = Filter<ActorComparison>;

const RULES: { readonly [F in ActorField]: Rule<ActorComparison> } = {
  actor_id: prefixRule("actor_id"),
  rate_limits: limitRule("rate_limits"),
  quotas: limitRule("quotas"),
  create_time: timeRule("create_time"),
  update_time: timeRule("update_time"),
};

const FIELDS = defineFields(RULES, {
  resource: "an actor",
  example: "rate_limits:requests",
  wildcardField: "an actor_id",
});

/** @example parseActorFilter('actor_id="team_*" AND NOT quotas:*', clock.now) */
export function parseActorFilter(text: string, now: () => number): ActorFilter {
  return parseFilter(text, FIELDS, now);
}

function limitRule(field: LimitField): Rule<ActorComparison> {
  return listRule<LimitField, ActorComparison>(field, "the name of a limit", (name) => ({
    node: "limit",
    field,
    name,
  }));
}
