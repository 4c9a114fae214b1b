import { parseCidr } from "../lib/cidr.ts";
import { type FieldViolation, invalidArgument, invalidArguments } from "./errors.ts";

/** The addresses from which a key is accepted, as a request has them. */
export interface IpRestriction {
  /** CIDR blocks or addresses, in any of their text forms. */
  readonly allowedCidrs: readonly string[];
}

const MAX_CIDRS = 64;

/**
 * Returns the canonical CIDR blocks of a restriction without duplicates; null if there is no restriction. Throws `INVALID_ARGUMENT` naming
 * each invalid block within `field`.
 */
export function checkIpRestriction(restriction: IpRestriction | undefined, field: string): string[] | null {
  if (restriction === undefined) return null;
  const { allowedCidrs } = restriction;
  const list = `${field}.allowed_cidrs`;
  if (allowedCidrs.length === 0) {
    // An empty list may be meant to allow everything or nothing.
    throw invalidArgument(list, "must have at least 1 item", "TOO_FEW_ITEMS");
  }
  if (allowedCidrs.length > MAX_CIDRS)
    throw invalidArgument(list, `must have at most ${MAX_CIDRS} entries`, "TOO_MANY_ITEMS");
  const violations: FieldViolation[] = [];
  const canonical = new Set<string>();
  for (const [index, text] of allowedCidrs.entries()) {
    const parsed = parseCidr(text);
    if ("cidr" in parsed) canonical.add(parsed.cidr);
    else violations.push({ field: `${list}[${index}]`, description: parsed.problem, reason: "INVALID_FORMAT" });
  }
  if (violations.length > 0) throw invalidArguments(violations);
  return [...canonical];
}
