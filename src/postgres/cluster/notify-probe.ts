import { randomUUID } from "node:crypto";
import { withTimeout } from "../../lib/with-timeout.ts";
import { databaseError } from "../connection/errors.ts";
import type { Database } from "../connection/pool.ts";
import { openPrimary } from "../connection/primary.ts";

/**
 * Sends a notification over the connections of a database, listens for it at `listenUrl` on a new channel, and returns the delay in
 * milliseconds; null if it did not arrive within `timeout`, as behind a transaction pooler.
 */
export async function probeNotifications(
  listenUrl: string,
  database: Database,
  timeout: number,
): Promise<number | null> {
  const channel = `keyhold_doctor_${randomUUID()}`;
  const notified = Promise.withResolvers<void>();
  const opening = openPrimary({
    url: listenUrl,
    statementTimeout: timeout,
    prepare: false,
    onNotification: () => notified.resolve(),
  });
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
    return await withTimeout(
      notified.promise.then(() => performance.now() - start),
      timeout,
      () => null,
    );
  } catch (error) {
    throw databaseError(error);
  } finally {
    await opening.end({ timeout: 1 });
  }
}
