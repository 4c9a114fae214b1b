import { type AnyFamily, counter, type Family, gauge, samples, seconds } from "../observability/metrics/family.ts";
import type { Signing } from "../signing/signing.ts";
import type { LastUsed } from "../verify/last-used.ts";
import type { Instruments } from "./instruments.ts";
import type { JobStats, Jobs } from "./jobs.ts";
import type { Resources } from "./resources.ts";
import { readVersion } from "./version.ts";

/** What the metrics of a server are read from. */
export interface Measured {
  readonly resources: Resources;
  readonly signing: Signing;
  readonly lastUsed: LastUsed;
  readonly isReady: () => boolean;
  /** Milliseconds. */
  readonly leaseTtl: number;
  readonly meters: Instruments;
  readonly jobs: Jobs;
  /** Returns the uncaught exceptions of this process; undefined if another process counts them. */
  readonly uncaught?: (() => number) | undefined;
}

/** Returns every metric of a server but those of Node and the process; docs/metrics.md describes them. */
export async function metricsOf(measured: Measured): Promise<AnyFamily[]> {
  const { meters } = measured;
  return [
    gauge("keyhold_build_info", "The version that runs; always 1.", () => [
      { labels: { version: readVersion() }, value: 1 },
    ]),
    gauge("keyhold_ready", "Whether /health/ready answers 200.", () => Number(measured.isReady())),
    ...meters.calls.families(),
    ...loadMetrics(meters),
    counter("keyhold_verdicts_total", "Verdicts on credentials, by what they are by their form.", () =>
      meters.verdicts.samples(),
    ),
    counter(
      "keyhold_stale_verdicts_total",
      "Verdicts that were given without a lease, marked as stale.",
      () => meters.staleVerdicts,
    ),
    ...refusalMetrics(meters),
    ...cacheMetrics(measured.resources),
    ...clusterMetrics(measured),
    ...databaseMetrics(measured.resources),
    ...backgroundMetrics(measured),
    ...(measured.uncaught === undefined ? [] : [uncaughtMetric(measured.uncaught)]),
  ];
}

export function uncaughtMetric(read: Family["read"]): Family {
  return counter(
    "keyhold_uncaught_total",
    "Exceptions and rejections that nothing caught; each ends its process.",
    read,
  );
}

function loadMetrics({ limiter }: Instruments): Family[] {
  return [
    gauge(
      "keyhold_calls_waiting",
      "Calls that wait for something; of a batch, a tenth of its items.",
      () => limiter.units,
    ),
    gauge("keyhold_calls_waiting_max", "How many may wait before others are refused.", () => limiter.max),
    counter("keyhold_overload_refusals_total", "Calls refused as OVERLOADED.", () => limiter.rejections),
  ];
}

function refusalMetrics({ limits }: Instruments): Family[] {
  return [
    counter("keyhold_refused_credentials_total", "Calls whose caller was refused, by reason.", () =>
      samples("reason", limits.refused),
    ),
    counter("keyhold_rate_limited_total", "Calls refused as RATE_LIMITED, by what is limited.", () =>
      samples("limit", limits.limited),
    ),
  ];
}

function cacheMetrics({ reader }: Resources): Family[] {
  const stats = () => reader.stats();
  const entries = () => {
    const { entries: keys, recognitions: credentials, negatives } = stats();
    return samples("kind", { keys, credentials, negatives });
  };
  return [
    counter("keyhold_cache_hits_total", "Look-ups of keys that were answered from memory.", () => stats().hits),
    counter("keyhold_cache_misses_total", "Look-ups of keys that had to be read.", () => stats().misses),
    counter("keyhold_cache_evictions_total", "Entries that had to go for others.", () => stats().evictions),
    counter(
      "keyhold_cache_invalidations_total",
      "Times that something was forgotten because it changed, or may have.",
      () => stats().invalidations,
    ),
    gauge("keyhold_cache_entries", "Entries: keys, credentials, and look-ups that found nothing.", entries),
    gauge("keyhold_cache_bytes", "Size of the entries.", () => stats().bytes),
    gauge("keyhold_cache_allocated_bytes", "Memory that is taken for them.", () => stats().allocatedBytes),
  ];
}

function clusterMetrics({ resources, leaseTtl }: Measured): Family[] {
  const { membership, received } = resources.coherence;
  return [
    gauge("keyhold_lease_fresh", "Whether the lease is held, so that answers may come from memory.", () =>
      Number(membership.lease.isFresh),
    ),
    gauge("keyhold_lease_age_seconds", "Time since the last renewal that was granted.", () =>
      seconds(membership.lease.age),
    ),
    gauge("keyhold_lease_ttl_seconds", "How long a lease is.", () => leaseTtl / 1000),
    gauge("keyhold_feed_lag_seconds", "How long news of a change takes to come, by the last renewal.", () =>
      seconds(membership.feedLag),
    ),
    counter(
      "keyhold_feed_changes_total",
      "News of changes, by what changed; forgotten: everything may have, unheard.",
      () => samples("kind", received),
    ),
  ];
}

function databaseMetrics({ pools, coherence }: Resources): Family[] {
  const ofPools = (read: (usage: Usage) => number) => () =>
    Object.entries(pools).map(([pool, { usage }]) => ({ labels: { pool }, value: read(usage) }));
  return [
    gauge("keyhold_database_reachable", "Whether the database is thought to be there.", () =>
      Number(coherence.unavailableReason() === null),
    ),
    gauge(
      "keyhold_database_refused",
      "Whether the database is refused, since it has lost changes that were durable.",
      () => Number(coherence.membership.isDatabaseRefused),
    ),
    gauge(
      "keyhold_database_connections",
      "Connections that are open.",
      ofPools(({ open }) => open),
    ),
    gauge(
      "keyhold_database_connections_in_use",
      "Connections that have a user.",
      ofPools(({ inUse }) => inUse),
    ),
    gauge(
      "keyhold_database_connections_max",
      "Connections that there may be.",
      ofPools(({ max }) => max),
    ),
    gauge(
      "keyhold_database_waiting",
      "Statements that wait for a connection.",
      ofPools(({ waiting }) => waiting),
    ),
  ];
}

type Usage = Resources["pools"]["changes"]["usage"];

function backgroundMetrics({ signing, lastUsed, jobs }: Measured): Family[] {
  const byTask = (read: (job: JobStats) => number | null) => () =>
    jobs.stats.flatMap((job) => {
      const value = read(job);
      return value === null ? [] : [{ labels: { task: job.name }, value }];
    });
  return [
    gauge("keyhold_signing_key_active", "Whether there is a key to sign tokens with.", () => Number(signing.hasActive)),
    gauge("keyhold_signing_key_age_seconds", "Age of the key that signs.", () => seconds(signing.activeAge)),
    gauge("keyhold_last_used_queue", "Keys whose last_used_time is still to be written.", () => lastUsed.size),
    counter(
      "keyhold_background_runs_total",
      "Runs of background jobs.",
      byTask(({ runs }) => runs),
    ),
    counter(
      "keyhold_background_failures_total",
      "Failed runs of background jobs.",
      byTask(({ failures }) => failures),
    ),
    counter(
      "keyhold_background_seconds_total",
      "Time spent in background jobs.",
      byTask(({ duration }) => seconds(duration)),
    ),
    gauge(
      "keyhold_background_last_success_timestamp_seconds",
      "End of the last run that succeeded, as Unix time.",
      byTask(({ lastSuccess }) => seconds(lastSuccess)),
    ),
  ];
}
