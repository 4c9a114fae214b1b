import { toConfig } from "../../src/server/config/config.ts";
import { loadRootSecrets } from "../../src/server/root-secrets/file.ts";
import type { Fixture } from "../harness/fixture.ts";
import type { SeededCredential } from "../seed/credentials.ts";
import { type SeedOptions, seedKeys } from "../seed/seed.ts";
import { databaseOf, type Installation, type InstallOptions, install } from "./installation.ts";

export interface Seeded {
  readonly installation: Installation;
  /** Credentials spread evenly over all keys, oldest first. */
  readonly credentials: readonly string[];
}

/** Starts the service on a database with this many keys, like after a year; some have a real credential. */
export async function installSeeded(
  fixture: Fixture,
  {
    count,
    credentials = 0,
    environment,
    ...shape
  }: Pick<SeedOptions, "count" | "credentials" | "isAdverse" | "rateLimits"> & Pick<InstallOptions, "environment">,
): Promise<Seeded> {
  const installation = await install(fixture, environment && { environment });
  const { current: root } = await loadRootSecrets(toConfig({ KEYHOLD_DATA_DIR: installation.dataDir }));
  const sql = databaseOf(fixture, installation);
  const made: SeededCredential[] = await seedKeys(sql, { count, credentials, root, ...shape, now: new Date() });
  return { installation, credentials: made.map(({ credential }) => credential) };
}
