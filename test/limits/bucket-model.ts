import type { Grant, GrantRequest } from "../../src/limits/grants.ts";

type Shape = Pick<GrantRequest, "burst" | "rate">;

interface Row extends Shape {
  readonly level: number;
  /** Milliseconds since the epoch, by the clock of the database. */
  readonly updateTime: number;
}

/** The shared buckets of rate limits in memory: computes what the statements of `BucketStore` and of changes compute (bucket-model.test.ts). */
export class BucketModel {
  readonly #rows = new Map<string, Row>();

  /** Grants at a time of the clock of the database. `elapsed` are the milliseconds since the last statement, by that clock. */
  grant({ bucket, burst, rate, wanted, owed }: GrantRequest, now: number, elapsed = this.elapsed(bucket, now)): Grant {
    const stored = this.#rows.get(bucket) ?? { burst, rate, level: 0, updateTime: now };
    const drained = drain(stored, elapsed);
    const fitting = Math.max(0, Math.min(wanted, burst - owed));
    const granted = Math.max(0, Math.min(fitting, Math.floor(stored.burst - drained - owed)));
    const level = Math.max(0, drained + owed + granted);
    this.#rows.set(bucket, { ...stored, level, updateTime: now });
    return { granted, level };
  }

  /** Changes the limit of a bucket. */
  resize(bucket: string, { burst, rate }: Shape, now: number, elapsed = this.elapsed(bucket, now)): void {
    const stored = this.#rows.get(bucket) ?? { burst, rate, level: 0, updateTime: now };
    const drained = drain(stored, elapsed);
    const level = burst === stored.burst ? drained : Math.min(drained, burst);
    this.#rows.set(bucket, { burst, rate, level, updateTime: now });
  }

  elapsed(bucket: string, now: number): number {
    return now - (this.#rows.get(bucket)?.updateTime ?? now);
  }
}

function drain({ level, rate }: Row, elapsed: number): number {
  return Math.max(0, level - rate * Math.max(0, elapsed));
}
