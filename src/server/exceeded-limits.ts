import { callRecord } from "../audit/call-record.ts";
import { ExceededLimits } from "../audit/exceeded-limits.ts";
import type { OwnLimit } from "../auth/own-limits.ts";
import type { Principal } from "../domain/principal.ts";
import { isQuota, type LimitStatus } from "../domain/rate-limit.ts";
import { systemMonotonic } from "../lib/clock.ts";

/** Milliseconds without another event of a limit of Keyhold, and of a rate limit of a key or actor. */
const [OWN_PERIOD, PERIOD] = [3_600_000, 86_400_000];

/** Some addresses of an attack suffice. */
const MAX_OWN = 100;
const MAX_BUCKETS = 10_000;

/** `key/<key_id>/<name>` or `actor/<actor_id>/<name>`, as in `limits/owner.ts`; an actor id may contain slashes. */
const BUCKET = /^(key|actor)\/(.*)\/[^/]+$/s;

/** The limits that were exceeded, for the audit log. */
export class LimitEvents {
  readonly own = new ExceededLimits(MAX_OWN);
  readonly others = new ExceededLimits(MAX_BUCKETS);

  readonly onOwn = (limit: OwnLimit, caller: Principal, owner: string): void =>
    this.own.add(`own/${owner}/${limit}`, systemMonotonic(), () => ({
      limit,
      call: callRecord(caller),
      details: { owner },
      period: OWN_PERIOD,
    }));

  readonly onExceeded = (bucket: string, { limit, resetTime }: LimitStatus): void =>
    this.others.add(bucket, systemMonotonic(), () => {
      const [, kind, owner = ""] = BUCKET.exec(bucket) ?? [];
      return {
        limit: limit.name,
        ...(kind === "key" ? { keyId: owner } : { actorId: owner }),
        details: isQuota(limit)
          ? { limit: limit.limit, period: limit.period }
          : { quota: limit.quota, window: `${limit.window / 1000}s`, burst: limit.burst },
        period: PERIOD,
        ...(isQuota(limit) && resetTime !== null && { endTime: resetTime }),
      };
    });
}
