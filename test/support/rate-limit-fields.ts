import { type BareItem, isInnerList, parseList } from "structured-headers";

/** The parameters of each limit by its name. */
export type LimitParameters = Record<string, Record<string, BareItem>>;

/**
 * Reads `RateLimit-Policy` and `RateLimit` by an implementation of RFC 9651 of others. Throws if one is no list of strings with the parameters that
 * draft-ietf-httpapi-ratelimit-headers-11 requires (§3.1, §4.1).
 */
export function readRateLimitFields(headers: Headers): { policies: LimitParameters; states: LimitParameters } {
  const read = (name: string, required: string) => {
    const items = parseList(headers.get(name) ?? "").map((item): [string, Record<string, BareItem>] => {
      if (isInnerList(item)) throw new TypeError(`${name} has an inner list`);
      const [policy, parameters] = item;
      if (typeof policy !== "string") throw new TypeError(`${name} has an item that is no string`);
      if (!Number.isInteger(parameters.get(required)))
        throw new TypeError(`${name}: ${policy} has no integer ${required}`);
      return [policy, Object.fromEntries(parameters)];
    });
    return Object.fromEntries(items);
  };
  return { policies: read("ratelimit-policy", "q"), states: read("ratelimit", "r") };
}
