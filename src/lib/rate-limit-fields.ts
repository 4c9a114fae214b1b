/** A limit as the header fields of HTTP have it. */
export interface LimitField {
  readonly name: string;
  /** Requests that it admits per window. */
  readonly quota: number;
  /** Seconds; undefined: until the end of a period of the calendar. */
  readonly window: number | undefined;
  /** Requests left; undefined: unknown. */
  readonly remaining: number | undefined;
  /** Seconds until all of it is available again; undefined: unknown. */
  readonly reset: number | undefined;
}

/**
 * Returns the fields `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11, §3 and §4), lists of RFC 9651, by name in
 * lower case. A limit whose state is unknown has a policy only. The draft may still change: nothing else formats these fields.
 *
 * @example rateLimitFields([{ name: "requests", quota: 60, window: 60, remaining: 12, reset: 48 }])
 * // { "ratelimit-policy": '"requests";q=60;w=60', ratelimit: '"requests";r=12;t=48' }
 */
export function rateLimitFields(limits: readonly LimitField[]): Record<string, string> {
  const policies = limits.map(({ name, quota, window }) => item(name, { q: quota, w: window }));
  const states = limits
    .filter(({ remaining }) => remaining !== undefined)
    .map(({ name, remaining, reset }) => item(name, { r: remaining, t: reset }));
  return {
    ...(policies.length > 0 && { "ratelimit-policy": policies.join(", ") }),
    ...(states.length > 0 && { ratelimit: states.join(", ") }),
  };
}

/** Returns the seconds after which a rejected request may be accepted, if all limits that reject it have to wait so many milliseconds; at least 1. */
export function retryAfterSeconds(waits: readonly number[]): number {
  return Math.max(1, ...waits.map((wait) => Math.ceil(wait / 1000)));
}

/** The names of limits need no escapes in a string. */
function item(name: string, parameters: Readonly<Record<string, number | undefined>>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return `"${name}"${set.map(([key, value]) => `;${key}=${Math.ceil(value ?? 0)}`).join("")}`;
}
