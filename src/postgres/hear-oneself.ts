import { randomUUID } from "node:crypto";
import { connect } from "./connect.ts";
import { databaseError } from "./errors.ts";
import type { Database } from "./pool.ts";

/**
 * Sends a notification over the connections of a database and listens for it at `listenUrl`, on a channel of its own. Answers how
 * long it took in milliseconds, or null if it did not come within `timeout`, as when a pooler of transactions stands between.
 */
export async function hearOneself(listenUrl: string, database: Database, timeout: number): Promise<number | null> {
  const channel = `keyhold_doctor_${randomUUID()}`;
  const heard = Promise.withResolvers<true>();
  const sql = connect({
    url: listenUrl,
    maxConnections: 1,
    statementTimeout: timeout,
    prepare: false,
    onNotification: () => heard.resolve(true),
  });
  const over = Promise.withResolvers<null>();
  const timer = setTimeout(over.resolve, timeout, null);
  try {
    await sql.unsafe(`LISTEN "${channel}"`);
    const start = performance.now();
    await database.run((other) => other`SELECT pg_notify(${channel}, '')`);
    return (await Promise.race([heard.promise, over.promise])) && performance.now() - start;
  } catch (error) {
    throw databaseError(error);
  } finally {
    clearTimeout(timer);
    await sql.end({ timeout: 1 });
  }
}
