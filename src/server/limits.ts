import type { FastifyBaseLogger } from "fastify";
import type { ChangeLimit, ChargeOwner } from "../auth/change-limits.ts";
import { allowsOutage, isShadow, type Limit, type RateLimit } from "../domain/rate-limit.ts";
import { systemClock, systemMonotonic } from "../lib/clock.ts";
import { Limiter, type LimiterOptions } from "../limits/limiter.ts";
import { type AnyFamily, Counts, counter, gauge } from "../observability/metrics/family.ts";
import type { Jobs } from "./jobs.ts";
import type { Resources } from "./resources.ts";

type Outcome = "admitted" | "denied" | "shadow";

/** Names of limits that the metrics tell apart; operators choose few, and others are counted together. */
const MAX_NAMES = 50;

/** Milliseconds without a failed check after which an outage is over, so that the next one is logged. */
const OUTAGE_END = 60_000;

/** Keyhold's own limits that all nodes share. */
type OwnLimits = Readonly<Record<ChangeLimit, RateLimit | null>>;

/** The limits of keys on this node, with their metrics. */
export class RateLimits {
  readonly limiter: Limiter;
  readonly #outcomes = new Counts<string, Outcome>("limit", "outcome");
  readonly #names = new Set<string>();
  readonly #resources: Resources;
  readonly #own: OwnLimits;
  readonly #outages = { admitted: 0, denied: 0 };
  /** When a check failed last, in monotonic milliseconds. */
  #failed = Number.NEGATIVE_INFINITY;

  constructor(
    resources: Resources,
    own: OwnLimits,
    onExceeded: NonNullable<LimiterOptions["onExceeded"]>,
    log: Pick<FastifyBaseLogger, "warn">,
  ) {
    this.#resources = resources;
    this.#own = own;
    const { membership } = resources.coherence;
    this.limiter = new Limiter({
      grantTokens: resources.buckets.grantTokens,
      returnTokens: resources.buckets.returnTokens,
      nodes: () => membership.nodes,
      clock: systemClock,
      monotonic: systemMonotonic,
      onOutcome: (limit, isExceeded) => this.#count(limit, isExceeded),
      onExceeded: (bucket, status) => {
        if (!this.#isOwn(status.limit)) onExceeded(bucket, status);
      },
      onOutage: (limit, error) => this.#noteOutage(limit, error, log),
    });
  }

  readonly chargeOwner: ChargeOwner = (owner, limit, cost) => this.limiter.chargeOwner(owner, limit, cost);

  /** Starts the jobs: what was spent is charged when the server stops, at the latest. */
  start(jobs: Jobs, isStopping: () => boolean): void {
    jobs.start({
      name: "limits",
      interval: 1_000,
      failureMessage: "tokens that were spent could not be charged yet",
      runsAtStop: true,
      run: () => this.limiter.flush(isStopping()),
    });
    jobs.start({
      name: "limit_buckets",
      interval: 3_600_000,
      failureMessage: "empty buckets of limits could not be deleted",
      run: this.#resources.buckets.removeEmpty,
    });
  }

  families(): AnyFamily[] {
    const { limiter } = this;
    return [
      counter("keyhold_limit_checks_total", "Checks of limits of keys, by name of the limit and outcome.", () =>
        this.#outcomes.samples(),
      ),
      gauge("keyhold_limit_buckets", "Limits of keys about which this server knows something.", () => limiter.size),
      counter(
        "keyhold_limit_statements_total",
        "Statements that have requested tokens of limits.",
        () => limiter.stats.statements,
      ),
      counter("keyhold_limit_requests_total", "Requests for tokens of a limit.", () => limiter.stats.requests),
      counter("keyhold_limit_tokens_total", "Tokens of limits that were granted.", () => limiter.stats.tokens),
      counter(
        "keyhold_limit_debt_total",
        "Tokens of limits that were charged after they had been spent.",
        () => limiter.stats.owed,
      ),
      counter(
        "keyhold_limit_outages_total",
        "Checks of limits that failed because the database was unreachable or too slow: the verification was admitted or denied.",
        () => Object.entries(this.#outages).map(([outcome, value]) => ({ labels: { outcome }, value })),
      ),
    ];
  }

  #count(limit: Limit, isExceeded: boolean): void {
    if (this.#isOwn(limit)) return;
    const { name } = limit;
    if (!this.#names.has(name) && this.#names.size < MAX_NAMES) this.#names.add(name);
    const denial = isShadow(limit) ? "shadow" : "denied";
    this.#outcomes.add(this.#names.has(name) ? name : "other", isExceeded ? denial : "admitted");
  }

  #isOwn(limit: Limit): boolean {
    return limit === this.#own.changes || limit === this.#own.imports;
  }

  #noteOutage(limit: Limit, err: unknown, log: Pick<FastifyBaseLogger, "warn">): void {
    this.#outages[allowsOutage(limit) ? "admitted" : "denied"]++;
    const [now, before] = [systemMonotonic(), this.#failed];
    this.#failed = now;
    if (now - before < OUTAGE_END) return;
    log.warn(
      { err },
      "the database is unreachable or too slow: verifications of keys with limits fail, unless the limits have the outage policy ALLOW",
    );
  }
}
