import { existsSync } from "node:fs";
import { findBinaries } from "../embedded-postgres/binaries.ts";
import { clusterDirOf } from "../embedded-postgres/cluster.ts";
import { type EmbeddedOptions, startEmbeddedPostgres } from "../embedded-postgres/embedded.ts";
import { openSchema, prepareOwned } from "../postgres/migrations/schema.ts";
import type { Config } from "./config/config.ts";

export type EmbeddedStart = Pick<EmbeddedOptions, "log" | "ifRunning" | "onLaunched" | "settings">;

/**
 * Returns the configured server, or starts the embedded one, which only this module uses. Its URL has the role of the servers;
 * `prepareSchema` migrates the schema if this role may, and returns the applied migrations. @throws KeyholdError `DATABASE_UNAVAILABLE`
 */
export async function openDatabaseServer(
  { databaseUrl, databaseListenUrl, dataDir }: Pick<Config, "databaseUrl" | "databaseListenUrl" | "dataDir">,
  options: EmbeddedStart,
) {
  if (databaseUrl !== null) {
    // A transaction pooler would release the lock of the migrations to other clients.
    const prepareSchema = () => openSchema(databaseListenUrl ?? databaseUrl);
    return { url: databaseUrl, prepareSchema, stop: async () => {} };
  }
  const server = await startEmbeddedPostgres({ dataDir, ...options });
  return { url: server.serverUrl, prepareSchema: () => prepareOwned(server), stop: () => server.stop() };
}

/** Returns whether the data directory has the files of an embedded database, running or not. */
export function hasEmbeddedFiles(dataDir: string): boolean {
  return existsSync(clusterDirOf(dataDir));
}

/** Rejects unless this platform has an embedded database. @throws KeyholdError `DATABASE_UNAVAILABLE` */
export async function requireEmbedded(): Promise<void> {
  await findBinaries();
}
