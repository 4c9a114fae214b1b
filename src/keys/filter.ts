import {
  KEY_KINDS,
  KEY_STATUSES,
  type KeyKind,
  type KeyStatus,
  REVOCATION_REASONS,
  type RevocationReason,
} from "../domain/key.ts";
import { HASH_ALGORITHMS, type HashAlgorithm } from "../domain/raw-key-hash.ts";
import type {
  Filter,
  Operator,
  PrefixComparison,
  PresenceComparison,
  StringComparison,
  TimeComparison,
  UuidComparison,
} from "../filter/expression.ts";
import { defineFields, ORDERED, type Rule } from "../filter/fields.ts";
import { parseFilter } from "../filter/parse.ts";
import { booleanRule, enumRule, listRule, prefixRule, stringRule, timeRule, uuidRule } from "../filter/rules.ts";

export type KeyFilter = Filter<KeyComparison>;

export type StringField = "name" | "actor_id" | "hint" | "created_by" | "revoked_by" | "disabled_by";
export type TimeField =
  | "create_time"
  | "update_time"
  | "expire_time"
  | "last_used_time"
  | "rotate_time"
  | "revoke_time"
  | "disable_time";
type EnumField = "kind" | "status" | "revocation_reason" | "hash_algorithm";
export type KeyField = "key_id" | StringField | EnumField | "adopted" | "scopes" | "metadata" | TimeField;

export type KeyComparison =
  | UuidComparison<"key_id">
  | StringComparison<StringField>
  | PrefixComparison<"name">
  | TimeComparison<TimeField>
  | { readonly node: "kind"; readonly value: KeyKind }
  | { readonly node: "status"; readonly value: KeyStatus }
  | { readonly node: "reason"; readonly value: RevocationReason }
  | { readonly node: "hash_algorithm"; readonly value: HashAlgorithm }
  /** Whether a key that was imported by its hash is adopted. Others have no value. */
  | { readonly node: "adopted"; readonly value: boolean }
  /** `value` is one of the scopes. */
  | { readonly node: "scope"; readonly value: string }
  /** The metadata entry `key` satisfies the comparison. */
  | { readonly node: "entry"; readonly key: string; readonly operator: Operator; readonly value: string }
  /** The metadata have the entry `key`. */
  | { readonly node: "key"; readonly key: string }
  | PresenceComparison<KeyField>;

const RULES: { readonly [F in KeyField]: Rule<KeyComparison> } = {
  key_id: uuidRule("key_id"),
  name: prefixRule("name"),
  actor_id: stringRule("actor_id"),
  kind: enumRule("kind", "KEY_KIND_", KEY_KINDS, (value) => ({ node: "kind", value })),
  status: enumRule("status", "KEY_STATUS_", KEY_STATUSES, (value) => ({ node: "status", value })),
  scopes: listRule("scopes", "a scope", (value) => ({ node: "scope", value })),
  metadata: { ...listRule("metadata", "a key", (key) => ({ node: "key", key })), entry: entryRule },
  create_time: timeRule("create_time"),
  update_time: timeRule("update_time"),
  expire_time: timeRule("expire_time"),
  last_used_time: timeRule("last_used_time"),
  rotate_time: timeRule("rotate_time"),
  revoke_time: timeRule("revoke_time"),
  disable_time: timeRule("disable_time"),
  revocation_reason: enumRule("revocation_reason", "REVOCATION_REASON_", REVOCATION_REASONS, (value) => ({
    node: "reason",
    value,
  })),
  hint: stringRule("hint"),
  created_by: stringRule("created_by"),
  revoked_by: stringRule("revoked_by"),
  disabled_by: stringRule("disabled_by"),
  adopted: booleanRule("adopted", (value) => ({ node: "adopted", value })),
  hash_algorithm: enumRule("hash_algorithm", "HASH_ALGORITHM_", HASH_ALGORITHMS, (value) => {
    return { node: "hash_algorithm", value };
  }),
};

const FIELDS = defineFields(RULES, { resource: "a key", example: 'actor_id="a"', wildcardField: "a name" });

/**
 * Parses a filter of keys of this kind, or of both kinds if it is null.
 *
 * @example parseKeyFilter('actor_id="team_42" AND expire_time < now() + "30d"', "issued", clock.now)
 */
export function parseKeyFilter(text: string, kind: KeyKind | null, now: () => number): KeyFilter {
  return parseFilter(text, kind === null ? FIELDS : { ...FIELDS, resource: `an ${kind} key` }, now);
}

function entryRule(key: string): Rule<KeyComparison> {
  return {
    comparators: ORDERED,
    present: { node: "key", key },
    values: "a string",
    compare: (operator, value) => ({ node: "entry", key, operator, value }),
  };
}
