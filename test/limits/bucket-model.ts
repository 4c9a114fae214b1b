import type { Grant, GrantRequest } from "../../src/limits/grants.ts";

interface Row {
  readonly burst: number;
  readonly rate: number;
  readonly level: number;
  /** Milliseconds since the epoch, by the clock of the database. */
  readonly updateTime: number;
}

/** The shared buckets of rate limits in memory: computes what the statement of `BucketStore` computes (bucket-model.test.ts). */
export class BucketModel {
  readonly #rows = new Map<string, Row>();

  /** Grants at a time of the clock of the database. `elapsed` are the milliseconds since the last statement, by that clock. */
  grant({ bucket, burst, rate, wanted, owed }: GrantRequest, now: number, elapsed = this.elapsed(bucket, now)): Grant {
    const stored = this.#rows.get(bucket);
    const before = stored === undefined ? 0 : Math.max(0, stored.level - stored.rate * Math.max(0, elapsed));
    const drained = stored === undefined || stored.burst === burst ? before : Math.min(before, burst);
    const fitting = Math.max(0, Math.min(wanted, burst - owed));
    const granted = Math.max(0, Math.min(fitting, Math.floor(burst - drained - owed)));
    const level = Math.max(0, drained + owed + granted);
    this.#rows.set(bucket, { burst, rate, level, updateTime: now });
    return { granted, level };
  }

  elapsed(bucket: string, now: number): number {
    return now - (this.#rows.get(bucket)?.updateTime ?? now);
  }
}
