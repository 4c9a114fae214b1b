import { Denials } from "../audit/denials.ts";
import type { AuditFeed } from "../audit/feed.ts";
import { CallLimits } from "../auth/call-limits.ts";
import { FailedVerifications } from "../auth/failed-verifications.ts";
import { OwnLimitOutcomes } from "../auth/own-limits.ts";
import { DatabaseRejectedError } from "../cluster/history.ts";
import { type CredentialType, type Verdict, verificationErrorOf } from "../domain/verdict.ts";
import { CallTallies } from "../observability/metrics/calls.ts";
import {
  type AnyFamily,
  Counts,
  counter,
  type Family,
  gauge,
  samples,
  seconds,
} from "../observability/metrics/family.ts";
import type { Signing } from "../signing/signing.ts";
import { ConcurrencyLimiter } from "../transport/pipeline/concurrency-limiter.ts";
import type { LastUsed } from "../verify/last-used.ts";
import { LimitEvents } from "./exceeded-limits.ts";
import type { Jobs } from "./jobs.ts";
import type { RateLimits } from "./limits.ts";
import type { OwnLimiters } from "./own-limits.ts";
import type { Resources } from "./resources.ts";
import type { Usage } from "./usage.ts";
import { readBuild, readVersion } from "./version.ts";

export type GatewayKind = "forward_auth" | "ext_authz";

/** The counters of this process that no other module keeps. */
export class Instruments {
  readonly calls = new CallTallies();
  readonly limiter = new ConcurrencyLimiter();
  readonly verdicts = new Counts<CredentialType, string>("credential_type", "result");
  readonly limitEvents = new LimitEvents();
  readonly ownLimits = new OwnLimitOutcomes(this.limitEvents.onOwn);
  readonly limits: CallLimits;
  readonly failures: FailedVerifications;
  readonly gatewayDecisions = new Counts<GatewayKind, string>("gateway", "status");
  staleVerdicts = 0;
  /** Admin tokens in use by state; null before they are read. */
  expiringTokens: { readonly expiring: number; readonly expired: number } | null = null;
  /** `lag` is in milliseconds; `behind`: events that the log has and its tree does not have. */
  readonly audit = { events: 0, lag: 0, integrated: 0, behind: 0 };
  /** `lag` is in milliseconds. */
  readonly expiry = { events: { expiring: 0, expired: 0 }, lag: 0 };
  readonly webhooks = {
    attempts: { succeeded: 0, retry: 0, failed: 0, gone: 0 },
    /** `lag` is in milliseconds. */
    queue: { pending: 0, lag: 0 },
  };
  readonly adoptions = { adopted: 0, already: 0, failed: 0 };

  readonly denials = new Denials();

  constructor({ calls, verifications }: OwnLimiters) {
    this.failures = new FailedVerifications(verifications, this.ownLimits);
    this.limits = new CallLimits(calls, this.ownLimits, (caller, reason, keyId) =>
      this.denials.add(caller, reason, keyId),
    );
  }

  readonly onAdoption = (outcome: keyof Instruments["adoptions"]): void => {
    this.adoptions[outcome]++;
  };

  readonly onVerdict = (credentialType: CredentialType, verdict: Verdict): void => {
    this.verdicts.add(credentialType, verdict.valid ? "VALID" : verificationErrorOf(verdict.reason));
  };
}

export interface Measured {
  readonly resources: Resources;
  readonly feed: AuditFeed;
  readonly signing: Signing;
  readonly lastUsed: LastUsed;
  readonly rateLimits: RateLimits;
  readonly usage: Usage;
  readonly isReady: () => boolean;
  /** Milliseconds. */
  readonly leaseTtl: number;
  readonly meters: Instruments;
  readonly jobs: Jobs;
  /** Returns the uncaught exceptions of this process; undefined if another process counts them. */
  readonly uncaught?: (() => number) | undefined;
}

/** Returns the metrics of a server, except those of Node and the process; docs/metrics.md describes them. */
export function metricsOf(measured: Measured): AnyFamily[] {
  return [
    gauge("keyhold_build_info", "Version and build of the program; always 1.", () => [
      { labels: { version: readVersion(), build: readBuild() }, value: 1 },
    ]),
    gauge("keyhold_ready", "Whether /health/ready returns 200.", () => Number(measured.isReady())),
    ...instrumentMetrics(measured.meters),
    ...cacheMetrics(measured.resources),
    ...slowHashMetrics(measured.resources),
    ...clusterMetrics(measured),
    ...databaseMetrics(measured.resources),
    ...backgroundMetrics(measured),
    ...auditMetrics(measured),
    ...webhookMetrics(measured.meters),
    ...measured.rateLimits.families(),
    ...usageMetrics(measured.usage),
    ...(measured.uncaught === undefined ? [] : [uncaughtMetric(measured.uncaught)]),
  ];
}

function auditMetrics({ feed, meters: { audit, expiry, denials, limitEvents } }: Measured): Family[] {
  return [
    counter("keyhold_audit_events_total", "Events that this server has added to the audit log.", () => audit.events),
    gauge(
      "keyhold_audit_lag_seconds",
      "How long the oldest event of the last run waited before it was added to the audit log.",
      () => seconds(audit.lag),
    ),
    counter(
      "keyhold_audit_denials_dropped_total",
      "Denied calls that are in no event of the audit log, because there were too many kinds in a minute.",
      () => denials.dropped,
    ),
    counter(
      "keyhold_audit_limits_dropped_total",
      "Denials by limits that are in no event of the audit log, because too many limits were exceeded in an hour.",
      () => limitEvents.own.dropped + limitEvents.others.dropped,
    ),
    counter(
      "keyhold_audit_tree_events_total",
      "Events that this server has added to the tree of the audit log.",
      () => audit.integrated,
    ),
    gauge(
      "keyhold_audit_tree_behind_events",
      "Events of the audit log that its tree did not have after the last run.",
      () => audit.behind,
    ),
    gauge("keyhold_audit_watchers", "Calls of WatchAuditEvents.", () => feed.watchers),
    counter(
      "keyhold_expiry_events_total",
      "Events that this server has recorded of keys that expire soon or have expired.",
      () => samples("kind", expiry.events),
    ),
    gauge(
      "keyhold_expiry_lag_seconds",
      "How long the oldest event of an expiry that is not recorded yet has been due.",
      () => seconds(expiry.lag),
    ),
  ];
}

function usageMetrics(usage: Usage): Family[] {
  if (usage === null) return [];
  const { counter: counting, flusher } = usage;
  return [
    counter(
      "keyhold_usage_stored_total",
      "Verifications that this server has stored in the usage of keys.",
      () => flusher.stored,
    ),
    counter(
      "keyhold_usage_dropped_total",
      "Verifications that are missing in the usage of keys, because too many keys were in use while the database could not store it.",
      () => counting.dropped,
    ),
    gauge(
      "keyhold_usage_waiting_rows",
      "Keys, or keys with an outcome or a limit, whose usage is to be stored.",
      () => flusher.waiting,
    ),
  ];
}

function webhookMetrics({ webhooks }: Instruments): Family[] {
  return [
    counter("keyhold_webhook_attempts_total", "Requests to webhook endpoints, by what followed.", () =>
      samples("outcome", webhooks.attempts),
    ),
    gauge(
      "keyhold_webhook_deliveries_pending",
      "Deliveries to all webhook endpoints that wait for an attempt.",
      () => webhooks.queue.pending,
    ),
    gauge("keyhold_webhook_lag_seconds", "How long the oldest delivery that is due has waited for its attempt.", () =>
      seconds(webhooks.queue.lag),
    ),
  ];
}

export function uncaughtMetric(read: Family["read"]): Family {
  return counter("keyhold_uncaught_total", "Uncaught exceptions; each ends its process.", read);
}

function instrumentMetrics(meters: Instruments): AnyFamily[] {
  const { calls, limiter, verdicts, limits, ownLimits, gatewayDecisions } = meters;
  return [
    ...calls.families(),
    gauge(
      "keyhold_calls_waiting",
      "Waiting calls, weighted: a batch counts as one call per 10 items.",
      () => limiter.units,
    ),
    gauge("keyhold_calls_waiting_max", "Limit on waiting calls; further calls are rejected.", () => limiter.max),
    counter("keyhold_overload_refusals_total", "Calls rejected with OVERLOADED.", () => limiter.rejections),
    counter("keyhold_verdicts_total", "Verdicts by credential type and result.", () => verdicts.samples()),
    counter("keyhold_gateway_decisions_total", "Decisions for gateways, by gateway protocol and HTTP status.", () =>
      gatewayDecisions.samples(),
    ),
    counter(
      "keyhold_stale_verdicts_total",
      "Verdicts returned without a lease, marked as stale.",
      () => meters.staleVerdicts,
    ),
    counter("keyhold_adoptions_total", "Adoptions of keys stored only as a hash, by outcome.", () =>
      samples("outcome", meters.adoptions),
    ),
    counter("keyhold_refused_credentials_total", "Rejected credentials, by reason.", () =>
      samples("reason", limits.rejections),
    ),
    gauge(
      "keyhold_admin_tokens_expiring",
      "Admin tokens in use that expire within 14 days, or that expired in the last 14 days while in use.",
      () => (meters.expiringTokens === null ? [] : samples("state", meters.expiringTokens)),
    ),
    counter("keyhold_rate_limited_total", "Calls and verifications rejected with RATE_LIMITED, by limit.", () =>
      samples("limit", ownLimits.denied),
    ),
    counter(
      "keyhold_rate_limit_admitted_total",
      "Calls, changes and failed verifications that Keyhold's own limits have admitted, by limit.",
      () => samples("limit", ownLimits.admitted),
    ),
  ];
}

function cacheMetrics({ reader }: Resources): Family[] {
  const stats = () => reader.stats();
  const entries = () => {
    const { entries: keys, credentials, negatives } = stats();
    return samples("kind", { keys, credentials, negatives });
  };
  return [
    counter("keyhold_cache_hits_total", "Lookups of credentials and keys served from the cache.", () => stats().hits),
    counter("keyhold_cache_misses_total", "Key lookups that read from the database.", () => stats().misses),
    counter("keyhold_cache_evictions_total", "Entries evicted to make room.", () => stats().evictions),
    counter(
      "keyhold_cache_invalidations_total",
      "Cache invalidations after a change or a possible change.",
      () => stats().invalidations,
    ),
    gauge("keyhold_cache_entries", "Cached keys, credentials and negative lookups.", entries),
    gauge("keyhold_cache_bytes", "Size of the cached entries.", () => stats().bytes),
    gauge("keyhold_cache_allocated_bytes", "Memory allocated for the cache.", () => stats().allocatedBytes),
  ];
}

function slowHashMetrics({ hashing: { slow } }: Resources): Family[] {
  return [
    gauge("keyhold_slow_hashes_running", "Slow hashes being computed.", () => slow.stats.running),
    gauge("keyhold_slow_hashes_waiting", "Waiting slow hashes; at most 144 can wait.", () => slow.stats.waiting),
    counter("keyhold_slow_hashes_total", "Slow hashes for verifications, by outcome.", () => {
      const { running: _, waiting: __, ...results } = slow.stats;
      return samples("result", results);
    }),
  ];
}

function clusterMetrics({ resources, leaseTtl }: Measured): Family[] {
  const { membership, received } = resources.coherence;
  return [
    gauge("keyhold_lease_fresh", "Whether the server has a lease and may answer from cache.", () =>
      Number(membership.lease.isFresh),
    ),
    gauge("keyhold_lease_age_seconds", "Time since the last lease renewal.", () => seconds(membership.lease.age)),
    gauge("keyhold_lease_ttl_seconds", "TTL of the lease.", () => leaseTtl / 1000),
    gauge("keyhold_feed_lag_seconds", "Delay of change notifications, measured at the last lease renewal.", () =>
      seconds(membership.session?.feedLag ?? null),
    ),
    gauge("keyhold_clock_offset_seconds", "Server clock minus database clock.", () =>
      seconds(membership.session?.clockOffset.least ?? null),
    ),
    counter(
      "keyhold_feed_changes_total",
      'Change notifications received, by kind; "missed": changed keys read in the audit log; "forgotten": the whole cache was invalidated.',
      () => samples("kind", received),
    ),
  ];
}

function databaseMetrics({ pools, coherence }: Resources): Family[] {
  const ofPools = (value: keyof typeof pools.changes.usage) => () =>
    Object.entries(pools).map(([pool, { usage }]) => ({ labels: { pool }, value: usage[value] }));
  return [
    gauge("keyhold_database_reachable", "Whether the database was reachable at the last attempt.", () =>
      Number(coherence.membership.unavailableReason === null),
    ),
    gauge("keyhold_database_refused", "Whether the database is rejected for losing durable changes.", () =>
      Number(coherence.membership.unavailableReason instanceof DatabaseRejectedError),
    ),
    gauge("keyhold_database_connections", "Open connections.", ofPools("open")),
    gauge("keyhold_database_connections_in_use", "Connections in use.", ofPools("inUse")),
    gauge("keyhold_database_connections_max", "Maximum number of connections.", ofPools("max")),
    gauge("keyhold_database_waiting", "Statements waiting for a connection.", ofPools("waiting")),
  ];
}

function backgroundMetrics({ signing, lastUsed, jobs }: Measured): Family[] {
  type Value = number | null;
  const byTask =
    (name: "runs" | "failures" | "duration" | "lastSuccess", toUnit = (value: Value) => value) =>
    () =>
      jobs.stats().flatMap((job) => {
        const value = toUnit(job[name]);
        return value === null ? [] : [{ labels: { task: job.name }, value }];
      });
  return [
    gauge("keyhold_signing_key_active", "Whether there is an active signing key.", () =>
      Number(signing.activeAlgorithm !== null),
    ),
    gauge("keyhold_signing_key_age_seconds", "Age of the active signing key.", () => seconds(signing.activeAge)),
    gauge("keyhold_last_used_queue", "Keys whose last_used_time has not been written yet.", () => lastUsed.size),
    counter("keyhold_background_runs_total", "Runs of background jobs.", byTask("runs")),
    counter("keyhold_background_failures_total", "Failed runs of background jobs.", byTask("failures")),
    counter("keyhold_background_seconds_total", "Time spent in background jobs.", byTask("duration", seconds)),
    gauge(
      "keyhold_background_last_success_timestamp_seconds",
      "Unix timestamp of the end of the last successful run.",
      byTask("lastSuccess", seconds),
    ),
  ];
}
