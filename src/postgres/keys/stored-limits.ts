import type { Quota, RateLimit } from "../../domain/rate-limit.ts";

/** A limit in the column `rate_limits`, and so in events of the audit log: as in the API, without what is the default. */
export type StoredLimit = {
  readonly name: string;
  readonly quota: number;
  /** Seconds, such as `60s`. */
  readonly window: string;
  readonly burst: number;
  readonly enforcement?: "RATE_LIMIT_ENFORCEMENT_SHADOW";
  readonly on_demand?: true;
  readonly on_outage?: "OUTAGE_POLICY_ALLOW";
};

export function toStoredLimit({ name, quota, window, burst, enforcement, onDemand, onOutage }: RateLimit): StoredLimit {
  return {
    ...{ name, quota, window: `${window / 1000}s`, burst },
    ...(enforcement === "SHADOW" && { enforcement: "RATE_LIMIT_ENFORCEMENT_SHADOW" }),
    ...(onDemand && { on_demand: true }),
    ...(onOutage === "ALLOW" && { on_outage: "OUTAGE_POLICY_ALLOW" }),
  };
}

export function fromStoredLimit(stored: StoredLimit): RateLimit {
  const { name, quota, window, burst, enforcement, on_demand = false, on_outage } = stored;
  return {
    ...{ name, quota, burst, onDemand: on_demand },
    window: Number.parseFloat(window) * 1000,
    enforcement: enforcement === undefined ? "ENFORCED" : "SHADOW",
    onOutage: on_outage === undefined ? "DENY" : "ALLOW",
  };
}

/** A quota in the column `quotas`, likewise. */
export type StoredQuota = {
  readonly name: string;
  readonly limit: number;
  readonly period: `QUOTA_PERIOD_${Quota["period"]}`;
  readonly anchor_time: string;
  /** When what is used of it was last adjusted, and by how many tokens. */
  readonly adjust_time?: string;
  readonly adjustment?: number;
};

export function toStoredQuota({ name, limit, period, anchorTime }: Quota): StoredQuota {
  return { name, limit, period: `${PERIOD_PREFIX}${period}`, anchor_time: new Date(anchorTime).toISOString() };
}

export function fromStoredQuota({ name, limit, period, anchor_time, adjust_time }: StoredQuota): Quota {
  return {
    ...{ name, limit, period: period.slice(PERIOD_PREFIX.length) as Quota["period"] },
    anchorTime: Date.parse(anchor_time),
    adjustTime: adjust_time === undefined ? null : Date.parse(adjust_time),
  };
}

const PERIOD_PREFIX = "QUOTA_PERIOD_";
