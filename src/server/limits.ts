import type { FastifyBaseLogger } from "fastify";
import { isShadow, type Limit } from "../domain/rate-limit.ts";
import { systemClock, systemMonotonic } from "../lib/clock.ts";
import { Limiter } from "../limits/limiter.ts";
import { type AnyFamily, Counts, counter, gauge } from "../observability/metrics/family.ts";
import type { Jobs } from "./jobs.ts";
import type { Resources } from "./resources.ts";

type Outcome = "admitted" | "denied" | "shadow";

/** Names of limits that the metrics tell apart; operators choose few, and others are counted together. */
const MAX_NAMES = 50;

/** The limits of keys on this node, with their metrics. */
export class RateLimits {
  readonly limiter: Limiter;
  readonly #outcomes = new Counts<string, Outcome>("limit", "outcome");
  readonly #names = new Set<string>();
  readonly #resources: Resources;
  #outages = 0;
  /** Whether an outage was logged. */
  #isOut = false;

  constructor(resources: Resources, log: Pick<FastifyBaseLogger, "warn">) {
    this.#resources = resources;
    const { membership } = resources.coherence;
    this.limiter = new Limiter({
      ...{ grantTokens: resources.buckets.grantTokens, returnTokens: resources.buckets.returnTokens },
      nodes: () => membership.nodes,
      clock: systemClock,
      monotonic: systemMonotonic,
      onOutcome: (limit, isExceeded) => this.#count(limit, isExceeded),
      onOutage: (error) => this.#noteOutage(error, log),
    });
  }

  /** Starts the jobs: what was spent is charged when the server stops, at the latest. */
  start(jobs: Jobs, isStopping: () => boolean): void {
    jobs.start({
      name: "limits",
      interval: 1_000,
      failureMessage: "tokens that were spent could not be charged yet",
      runsAtStop: true,
      run: async () => {
        await this.limiter.flush(isStopping());
        this.#isOut = false;
      },
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
        "Verifications that a limit has admitted because the database was unreachable.",
        () => this.#outages,
      ),
    ];
  }

  #count(limit: Limit, isExceeded: boolean): void {
    const { name } = limit;
    if (!this.#names.has(name) && this.#names.size < MAX_NAMES) this.#names.add(name);
    const denial = isShadow(limit) ? "shadow" : "denied";
    this.#outcomes.add(this.#names.has(name) ? name : "other", isExceeded ? denial : "admitted");
  }

  #noteOutage(err: unknown, log: Pick<FastifyBaseLogger, "warn">): void {
    this.#outages++;
    if (this.#isOut) return;
    this.#isOut = true;
    log.warn(
      { err },
      "the database is unreachable: verifications are admitted where limits have the outage policy ALLOW",
    );
  }
}
