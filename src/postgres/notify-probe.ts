import { randomUUID } from "node:crypto";
import { databaseError } from "./errors.ts";
import type { Database } from "./pool.ts";
import { openPrimary } from "./primary.ts";

/**
 * Sends a notification through a database's connections and listens for it at `listenUrl`, on a separate channel. Returns the delay in
 * milliseconds, or null if it did not arrive within `timeout`, for example through a transaction pooler.
 */
export async function probeNotifications(
  listenUrl: string,
  database: Database,
  timeout: number,
): Promise<number | null> {
  const channel = `keyhold_doctor_${randomUUID()}`;
  const received = Promise.withResolvers<true>();
  const opening = openPrimary({
    url: listenUrl,
    maxConnections: 1,
    statementTimeout: timeout,
    prepare: false,
    onNotification: () => received.resolve(true),
  });
  const over = Promise.withResolvers<null>();
  const timer = setTimeout(over.resolve, timeout, null);
  try {
    const sql = await opening.ready;
    await sql.unsafe(`LISTEN "${channel}"`);
    const start = performance.now();
    await database.run((other) =>
      other.begin(async (transaction) => {
        // The commit waits for synchronous standbys, which may be down.
        await transaction.unsafe(`SET LOCAL statement_timeout = ${timeout}`);
        await transaction`SELECT pg_notify(${channel}, '')`;
      }),
    );
    return (await Promise.race([received.promise, over.promise])) && performance.now() - start;
  } catch (error) {
    throw databaseError(error);
  } finally {
    clearTimeout(timer);
    await opening.end({ timeout: 1 });
  }
}
