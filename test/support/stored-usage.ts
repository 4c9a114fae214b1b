import { UNRESTRICTED } from "../../src/domain/principal.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { createUsageReader } from "../../src/postgres/usage/usage-reader.ts";
import { alignPeriod, DAY, type Dimension, HOUR } from "../../src/usage/query.ts";

/** Verifications that are stored. */
export interface StoredUsage {
  readonly all: number;
  /** Those in the hours since this process was started, by the clock of the machine. */
  readonly byHour: number;
  /** Units of all limits. */
  readonly units: number;
}

/** Returns the verifications, and the units that they cost, in the database with this URL. */
export async function readUsage(url: string): Promise<StoredUsage> {
  const pool = new Pool({ url, maxConnections: 1, statementTimeout: 10_000, prepare: true });
  const reader = createUsageReader(pool);
  const sum = async (startTime: Date, endTime: Date, step: number, groupBy: readonly Dimension[] = []) => {
    const query = { ...alignPeriod(startTime, endTime, step), step, groupBy };
    const counts = await reader.query(query, { offset: 0, limit: 1_000 }, UNRESTRICTED);
    return counts.reduce((total, { count }) => total + count, 0);
  };
  const [began, now] = [new Date(performance.timeOrigin), new Date()];
  const [start, end] = [new Date(began.getTime() - 2 * DAY), new Date(now.getTime() + 2 * DAY)];
  try {
    return {
      all: await sum(start, end, DAY),
      byHour: await sum(began, now, HOUR),
      units: await sum(start, end, DAY, ["limit"]),
    };
  } finally {
    await pool.close();
  }
}
