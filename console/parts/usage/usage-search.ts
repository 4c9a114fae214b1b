import { KeyKind } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { PERIOD_NAMES, type Period } from "./usage-period.ts";

export const GROUPINGS = ["outcome", "key", "actor", "limit"] as const;

export type Grouping = (typeof GROUPINGS)[number];

export const KINDS = { issued: KeyKind.ISSUED, imported: KeyKind.IMPORTED } as const;

/** The search parameters of the page of the usage. */
export const USAGE_PARAMETERS = ["period", "by", "actor", "key", "kind", "limit", "outcome"] as const;

type Parameter = (typeof USAGE_PARAMETERS)[number];

export type UsageSearch = { readonly [P in Parameter]?: readonly string[] };

/** What the page of the usage shows. Empty: any. */
export interface UsageSelection {
  readonly period: Period;
  readonly by: Grouping;
  readonly actor: string;
  readonly key: string;
  readonly kind: keyof typeof KINDS | "";
  readonly limit: string;
  readonly outcome: string;
  /** Units of limits are shown instead of verifications. They have no outcome. */
  readonly isUnits: boolean;
}

/** Reads search parameters; those that are not understood are as if they were absent. */
export function selectionOf(search: UsageSearch): UsageSelection {
  const text = (name: Parameter) => search[name]?.[0] ?? "";
  const choice = <const C extends string>(name: Parameter, choices: readonly C[]) =>
    choices.find((one) => one === text(name));
  const limit = text("limit");
  const by = choice("by", GROUPINGS) ?? "outcome";
  const isUnits = limit !== "" || by === "limit";
  return {
    ...{ limit, isUnits, actor: text("actor"), key: text("key"), outcome: isUnits ? "" : text("outcome") },
    by: isUnits && by === "outcome" ? "limit" : by,
    period: choice("period", PERIOD_NAMES) ?? "24h",
    kind: choice("kind", ["issued", "imported"]) ?? "",
  };
}

/** Returns the fields of a request that select what is shown. */
export function requestOf({ actor, key, kind, limit, outcome }: UsageSelection) {
  return { actorId: actor, keyId: key, limit, outcome, kind: kind === "" ? KeyKind.UNSPECIFIED : KINDS[kind] };
}

/** Returns the search parameters of a selection. */
export function searchOf({
  period,
  by,
  actor,
  key,
  kind,
  limit,
  outcome,
}: Omit<UsageSelection, "isUnits">): UsageSearch {
  const values = Object.entries({ period, by, actor, key, kind, limit, outcome });
  return Object.fromEntries(values.flatMap(([name, value]) => (value === "" ? [] : [[name, [value]]])));
}
