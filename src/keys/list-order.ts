import { type Order, parseOrderBy } from "../paging/order.ts";

export const ORDER_FIELDS = ["create_time", "expire_time", "last_used_time", "name"] as const;

export type OrderField = (typeof ORDER_FIELDS)[number];

/**
 * The order of a list. Keys without a value come last, and first if `isDescending`. Keys with the same value are in the order of `key_id`,
 * which is also that of `create_time`.
 */
export type ListOrder = Order<OrderField>;

/** A place in a list: that of a key. */
export interface ListPosition {
  /** A UUID, in lower case. */
  readonly keyId: string;
  /** The name, or the time in ISO 8601 with its microseconds; null: the key has none, or the list is ordered by `create_time`. */
  readonly value: string | null;
}

const NEWEST_FIRST: ListOrder = { field: "create_time", isDescending: true };

/** Parses `order_by`; empty means newest first. Throws `INVALID_ARGUMENT`. */
export function parseOrder(text: string): ListOrder {
  return parseOrderBy(text, ORDER_FIELDS, NEWEST_FIRST);
}
