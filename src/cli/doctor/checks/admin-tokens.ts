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
  const revoke = `then revoke this one: keyhold keys revoke ${keyId}`;
  if (expireTime.getTime() <= now)
    return error(`${token} expired at ${time}, in use`, `give its user another one, ${revoke}`);
  const renew = `keyhold admin token renew ${keyId}, or give its user another one and revoke this one`;
  return warning(`${token} is in use and expires at ${time}`, renew);
}
