import { type Config, readConfig } from "../config.ts";
import { bringUpToDate } from "../postgres/schema.ts";
import { withFoundation } from "./command.ts";

export interface MigrateOptions {
  /** The role of the servers. */
  readonly grantTo?: string;
}

/** Brings the schema up to date as its owner, and gives the role of the servers what it needs. Any number may at once. */
export async function migrate({ grantTo }: MigrateOptions): Promise<void> {
  const config = readConfig();
  if (config.databaseUrl === null) await withFoundation(async ({ migrated }) => tell(migrated));
  else tell(await migrateAsOwner(config, config.databaseUrl, grantTo));
}

function migrateAsOwner(config: Config, databaseUrl: string, grantTo: string | undefined): Promise<string[]> {
  const url = config.databaseMigrateUrl ?? config.databaseListenUrl ?? databaseUrl;
  const serverRole = userOf(databaseUrl);
  return bringUpToDate(url, grantTo ?? (serverRole === userOf(url) ? null : serverRole));
}

function userOf(url: string): string {
  return decodeURIComponent(new URL(url).username);
}

function tell(migrated: readonly string[]): void {
  console.log(migrated.length === 0 ? "The schema is up to date." : `Applied ${migrated.join(", ")}.`);
}
