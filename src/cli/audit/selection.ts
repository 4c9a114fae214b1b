import { parseDuration } from "../../domain/duration.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { parseKeyId } from "../../domain/key.ts";
import { parseTimestamp } from "../../filter/timestamp.ts";
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
export function filterOf(selection: Selection, ...more: readonly string[]): string {
  const { filter = "", key, actor, caller, action, since, until } = selection;
  return allOf(filter, [
    ...equalTo("key_id", key === undefined ? key : parseKeyId(key, "--key")),
    ...equalTo("actor_id", actor),
    ...equalTo("caller", caller),
    ...equalTo("action", action).map((condition) => condition.replace(/\\\*"$/, '*"')),
    ...(since === undefined ? [] : [`time >= ${timeTerm("--since", since)}`]),
    ...(until === undefined ? [] : [`time < ${timeTerm("--until", until)}`]),
    ...more,
  ]);
}

function timeTerm(option: string, text: string): string {
  if (parseTimestamp(text) !== undefined) return `"${text}"`;
  if (/[-:]/.test(text))
    throw invalidArgument(option, "must be an RFC 3339 time such as 2030-01-02T03:04:05Z, or a duration such as 7d");
  parseDuration(text, option);
  return `now() - "${text}"`;
}
