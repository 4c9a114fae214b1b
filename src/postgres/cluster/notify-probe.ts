import { randomUUID } from "node:crypto";
import { withTimeout } from "../../lib/with-timeout.ts";
import type { Database } from "../connection/pool.ts";
import { withPrimary } from "../connection/primary.ts";

/**
 * Sends a notification over the connections of a database, listens for it at `listenUrl` on a new channel, and returns the delay in
 * milliseconds; null if it did not arrive within `timeout`, as behind a transaction pooler.
 */
export function probeNotifications(listenUrl: string, database: Database, timeout: number): Promise<number | null> {
  const channel = `keyhold_doctor_${randomUUID()}`;
  const notified = Promise.withResolvers<void>();
  const options = {
    url: listenUrl,
    statementTimeout: timeout,
    prepare: false,
    onNotification: () => notified.resolve(),
  };
  return withPrimary(options, async (sql) => {
    await sql.unsafe(`LISTEN "${channel}"`);
    const start = performance.now();
    await database.run((other) =>
      other.begin(async (transaction) => {
        // The commit waits for synchronous standbys, which may be down.
        await transaction.unsafe(`SET LOCAL statement_timeout = ${timeout}`);
        await transaction`SELECT pg_notify(${channel}, '')`;
      }),
    );
    return withTimeout(
      notified.promise.then(() => performance.now() - start),
      timeout,
      () => null,
    );
  });
}
