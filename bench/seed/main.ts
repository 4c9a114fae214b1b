import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openPrimary } from "../../src/postgres/connection/primary.ts";
import { bringUpToDate, prepareOwned } from "../../src/postgres/migrations/schema.ts";
import { readConfig } from "../../src/server/config/config.ts";
import { loadRootSecrets } from "../../src/server/root-secrets/file.ts";
import { seedKeys } from "./seed.ts";

/**
 * Seeds the database that the KEYHOLD_… environment names: `node bench/seed/main.ts --count 1000000 --credentials 10000 --out
 * credentials.txt`. The file has one credential per line.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      count: { type: "string", default: "1000000" },
      credentials: { type: "string", default: "0" },
      out: { type: "string" },
    },
  });
  const config = readConfig();
  const { current: root } = await loadRootSecrets(config);
  const server =
    config.databaseUrl === null
      ? await startEmbeddedPostgres({ dataDir: config.dataDir, ifRunning: "attach", log: () => {} })
      : null;
  // As the owner, since the servers' role may not analyze the table.
  const url = config.databaseMigrateUrl ?? config.databaseUrl ?? server?.url ?? "";
  const opening = openPrimary({ url, statementTimeout: 0, prepare: false });
  try {
    const sql = await opening.ready;
    await (server === null ? bringUpToDate(url, null) : prepareOwned(server));
    const shape = { count: Number(values.count), credentials: Number(values.credentials) };
    const seeded = await seedKeys(sql, { ...shape, root, now: new Date(systemClock.now()) });
    if (values.out !== undefined) {
      await writeFile(values.out, seeded.map(({ credential }) => `${credential}\n`).join(""), { mode: 0o600 });
    }
  } finally {
    await opening.end({ timeout: 5 });
    await server?.stop();
  }
}

await main();
