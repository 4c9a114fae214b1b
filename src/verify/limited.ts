import { type Charged, isQuota } from "../domain/rate-limit.ts";
import { invalid, type Valid, type Verdict } from "../domain/verdict.ts";

/** Returns the verdict on a valid credential whose key or actor has limits, by what charging them has resulted in. */
export function limited(credential: Valid, { statuses, denied }: Charged): Verdict {
  if (statuses.length > 0) credential.limits = statuses;
  if (denied === null) return credential;
  const { limit, retryAfter } = denied;
  const [what, reason] = isQuota(limit)
    ? (["quota", "QUOTA_EXCEEDED"] as const)
    : (["rate limit", "RATE_LIMITED"] as const);
  const remedy =
    retryAfter === null ? "the cost is more than it ever admits" : `retry after ${Math.ceil(retryAfter / 1000)} s`;
  const message = `the ${what} "${limit.name}" is exceeded; ${remedy}`;
  return { ...invalid(reason, message, credential.keyId), credential, limits: statuses };
}
