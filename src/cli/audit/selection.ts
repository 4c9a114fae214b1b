import { parseDuration } from "../../domain/duration.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { parseKeyId } from "../../domain/key.ts";
import { parseTimestamp } from "../../filter/timestamp.ts";
import { systemClock } from "../../lib/clock.ts";
import { allOf, equalTo } from "../filter.ts";

export interface Selection {
  readonly filter?: string;
  readonly key?: string;
  readonly actor?: string;
  readonly caller?: string;
  /** A star at its end stands for any text. */
  readonly action?: string;
  /** RFC 3339 times, or durations before now. */
  readonly since?: string;
  readonly until?: string;
}

/** Returns the filter of the options, all of which an event must satisfy. Throws `INVALID_ARGUMENT` naming the invalid option. */
export function filterOf({ filter = "", key, actor, caller, action, since, until }: Selection): string {
  return allOf(filter, [
    ...equalTo("key_id", key === undefined ? key : parseKeyId(key, "--key")),
    ...equalTo("actor_id", actor),
    ...equalTo("caller", caller),
    ...equalTo("action", action).map((condition) => condition.replace(/\\\*"$/, '*"')),
    ...(since === undefined ? [] : [`time >= "${timeOf("--since", since)}"`]),
    ...(until === undefined ? [] : [`time < "${timeOf("--until", until)}"`]),
  ]);
}

/** Returns the RFC 3339 time that an option states: as it is, or as a duration before now. Throws `INVALID_ARGUMENT` naming the option. */
export function timeOf(option: string, text: string): string {
  const time = parseTimestamp(text);
  if (time !== undefined) return time;
  if (/[-:]/.test(text))
    throw invalidArgument(option, "must be an RFC 3339 time such as 2030-01-02T03:04:05Z, or a duration such as 7d");
  return new Date(systemClock.now() - parseDuration(text, option)).toISOString();
}
