import {
  findSuspectedDuplicates,
  MAX_SUSPECTED,
  type SuspectedDuplicate,
} from "../../../postgres/keys/duplicate-raw-keys.ts";
import { type ExpiringToken, findExpiringTokens } from "../../../postgres/keys/expiring-tokens.ts";
import { type Check, type DatabaseContext, error, type Finding, ok, warning } from "../finding.ts";

/** Checks for admin tokens, also of gateways, that are in use and expire soon, or that have expired while they were in use. */
export const checkAdminTokens: Check<DatabaseContext> = async ({ database, hasSchema, clock }) => {
  if (!hasSchema) return [];
  const now = clock.now();
  const expiring = await findExpiringTokens(database, new Date(now));
  if (expiring.length === 0) return [ok("no admin token in use expires within 14 days")];
  return expiring.map((token) => evaluate(token, now));
};

function evaluate({ keyId, name, scopes, expireTime }: ExpiringToken, now: number): Finding {
  const token = `the admin token ${JSON.stringify(name)} (${keyId}, ${scopes.join(" ")})`;
  const time = expireTime.toISOString();
  const revoke = `then revoke this token: keyhold keys revoke ${keyId}`;
  if (expireTime.getTime() <= now)
    return error(`${token} expired at ${time} but is still in use`, `issue a new token to the user, ${revoke}`);
  const renew = `run \`keyhold admin token renew ${keyId}\`, or issue a new token and revoke this token`;
  return warning(`${token} is in use and expires at ${time}`, renew);
}

/** Maximum number of pairs in a message. */
const MAX_NAMED = 5;

const REMEDY =
  "verify the raw key: if the two keys are duplicates, the log names both. Then delete one of the keys: otherwise the raw key is rejected as soon as either key is revoked or expires";

/** Checks for raw keys that release 0.1 stored twice during a root secret rotation, or that were re-imported while a root secret was missing. */
export const checkDuplicates: Check<DatabaseContext> = async ({ database, hasSchema }) => {
  if (!hasSchema) return [];
  const suspected = await findSuspectedDuplicates(database);
  if (suspected.length === 0) return [ok("no raw key appears to be stored twice")];
  return [warning(`imported keys that may have the same raw key: ${textOf(suspected)}`, REMEDY)];
};

function textOf(suspected: readonly SuspectedDuplicate[]): string {
  const named = suspected.slice(0, MAX_NAMED).map(({ older, newer }) => `${older} and ${newer}`);
  const rest = suspected.length - named.length;
  const more = suspected.length === MAX_SUSPECTED ? `at least ${rest} more pairs` : `${rest} more pairs`;
  return [...named, ...(rest === 0 ? [] : [more])].join("; ");
}
