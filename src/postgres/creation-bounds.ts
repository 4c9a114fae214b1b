import type { Comparison, Filter, Operator } from "../keys/filter/filter.ts";

/** A condition on `key_id` that holds for every key the filter means. */
export interface IdBound {
  readonly operator: "<" | ">=";
  /** A UUID. */
  readonly keyId: string;
}

/** Milliseconds. A key id begins with the time at which the key was made; the clock may be set between that and `create_time`. */
const SLACK = 60_000;

/**
 * What a filter that requires a `create_time` says of `key_id`, in whose order keys are listed: the index then begins or ends
 * where such keys are. The filter is still to be applied.
 */
export function creationBounds(filter: Filter): IdBound[] {
  if (filter.node === "and") return filter.operands.flatMap(creationBounds);
  return filter.node === "time" && filter.field === "create_time" ? BOUNDS[filter.operator](filter) : [];
}

type TimeComparison = Extract<Comparison, { node: "time" }>;
type Bounds = (comparison: TimeComparison) => IdBound[];

const madeBefore: Bounds = ({ value }) => [{ operator: "<", keyId: firstIdAt(Date.parse(value) + SLACK) }];
const madeAfter: Bounds = ({ value }) => [{ operator: ">=", keyId: firstIdAt(Date.parse(value) - SLACK) }];

const BOUNDS: { readonly [O in Operator]: Bounds } = {
  "=": (comparison) => [...madeAfter(comparison), ...madeBefore(comparison)],
  "<": madeBefore,
  "<=": madeBefore,
  ">": madeAfter,
  ">=": madeAfter,
};

/** The least UUID of version 7 of this time in milliseconds (RFC 9562 §5.7: 48 bits of time come first). */
function firstIdAt(time: number): string {
  const digits = Math.max(time, 0).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}
