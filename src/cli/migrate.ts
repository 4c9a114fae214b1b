import { parseConnectionUrl } from "../postgres/connection/connection-url.ts";
import { bringUpToDate } from "../postgres/migrations/schema.ts";
import { type Config, readConfig } from "../server/config/config.ts";
import { withResources } from "./command.ts";
import { type OutputOptions, writeResult } from "./output.ts";

/** Migrates the schema as its owner and grants the servers' role, `grantTo`, what it needs. Safe to run concurrently. */
export async function migrate(options: OutputOptions & { readonly grantTo?: string }): Promise<void> {
  const config = readConfig({ withoutRootSecret: true });
  const applied =
    config.databaseUrl === null
      ? await withResources(async ({ migrated }) => migrated)
      : await migrateAsOwner(config, config.databaseUrl, options.grantTo);
  const text = applied.length === 0 ? "The schema is up to date." : `Applied ${applied.join(", ")}.`;
  await writeResult(options, { applied: [...applied] }, text);
}

function migrateAsOwner(config: Config, databaseUrl: string, grantTo: string | undefined): Promise<string[]> {
  const url = config.databaseMigrateUrl ?? config.databaseListenUrl ?? databaseUrl;
  const serverRole = parseConnectionUrl(databaseUrl).user;
  return bringUpToDate(url, grantTo ?? (serverRole === parseConnectionUrl(url).user ? null : serverRole));
}
