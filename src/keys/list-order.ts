import { invalidArgument, type KeyholdError } from "../domain/errors.ts";
import { suggestion } from "../lib/nearest-name.ts";
import { redactName } from "../lib/redact-name.ts";

export const ORDER_FIELDS = ["create_time", "expire_time", "last_used_time", "name"] as const;

export type OrderField = (typeof ORDER_FIELDS)[number];

/**
 * The order of a list. Keys without a value come last, and first if `isDescending`. Keys with the same value are in the order of `key_id`,
 * which is also that of `create_time`.
 */
export interface ListOrder {
  readonly field: OrderField;
  readonly isDescending: boolean;
}

/** A place in a list: that of a key. */
export interface ListPosition {
  /** A UUID, in lower case. */
  readonly keyId: string;
  /** The name, or the time in ISO 8601 with its microseconds; null: the key has none, or the list is ordered by `create_time`. */
  readonly value: string | null;
}

const NEWEST_FIRST: ListOrder = { field: "create_time", isDescending: true };
const ALLOWED = `${ORDER_FIELDS.join(", ")}; to reverse the order, add "desc" after the field`;

/**
 * Parses `order_by` (AIP-132) with one field, in snake_case or lowerCamelCase; empty means newest first. Throws `INVALID_ARGUMENT`.
 *
 * @example parseOrder("expire_time desc") // { field: "expire_time", isDescending: true }
 */
export function parseOrder(text: string): ListOrder {
  const [name = "", direction, ...rest] = text.trim().split(/ +/);
  if (name === "") return NEWEST_FIRST;
  if (text.includes(",")) throw invalidOrder(`only one field is allowed; use one of ${ALLOWED}`);
  const wanted = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const field = ORDER_FIELDS.find((candidate) => candidate === wanted);
  if (field === undefined) {
    const quoted = redactName(name, ORDER_FIELDS);
    throw invalidOrder(`unknown field "${quoted}"; allowed: ${ALLOWED}${suggestion(name, ORDER_FIELDS)}`);
  }
  if (rest.length > 0 || (direction ?? "desc") !== "desc") {
    throw invalidOrder(`unexpected text after ${field}; allowed: "desc"`);
  }
  return { field, isDescending: direction !== undefined };
}

function invalidOrder(description: string): KeyholdError {
  return invalidArgument("order_by", description);
}
