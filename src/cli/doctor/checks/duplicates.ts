import {
  findSuspectedDuplicates,
  MAX_SUSPECTED,
  type SuspectedDuplicate,
} from "../../../postgres/duplicate-raw-keys.ts";
import { type Answering, type Check, ok, warning } from "../finding.ts";

/** Pairs that a message names. */
const MAX_NAMED = 5;

const REMEDY =
  "verify the raw key: a log line names both if they are one. Then delete one of the two: with both, the raw key is refused as soon as one is revoked or expires";

/** Raw keys that release 0.1 stored twice while the root secret was rotated, or that were imported again while one was lost. */
export const checkDuplicates: Check<Answering> = async ({ database, hasSchema }) => {
  if (!hasSchema) return [];
  const suspected = await findSuspectedDuplicates(database);
  if (suspected.length === 0) return [ok("no raw key seems to be stored twice")];
  return [warning(`imported keys that may be one raw key: ${textOf(suspected)}`, REMEDY)];
};

function textOf(suspected: readonly SuspectedDuplicate[]): string {
  const named = suspected.slice(0, MAX_NAMED).map(({ older, newer }) => `${older} and ${newer}`);
  const rest = suspected.length - named.length;
  const more = suspected.length === MAX_SUSPECTED ? `at least ${rest} more pairs` : `${rest} more pairs`;
  return [...named, ...(rest === 0 ? [] : [more])].join("; ");
}
