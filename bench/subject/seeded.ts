import { toConfig } from "../../src/server/config/config.ts";
import { loadRootSecrets } from "../../src/server/root-secrets/file.ts";
import type { Stage } from "../harness/stage.ts";
import type { SeededCredential } from "../seed/credentials.ts";
import { seedKeys } from "../seed/seed.ts";
import { databaseOf, type Installation, install } from "./installation.ts";

export interface Seeded {
  readonly installation: Installation;
  /** Spread evenly over all keys, oldest first. */
  readonly credentials: readonly string[];
}

/** The service on a database with this many keys, as after a year; some of them have a real credential. */
export async function installSeeded(
  stage: Stage,
  { count, credentials = 0 }: { readonly count: number; readonly credentials?: number },
): Promise<Seeded> {
  const installation = await install(stage);
  const { current: root } = await loadRootSecrets(toConfig({ KEYHOLD_DATA_DIR: installation.dataDir }));
  const sql = databaseOf(stage, installation);
  const made: SeededCredential[] = await seedKeys(sql, { count, credentials, root, now: new Date() });
  return { installation, credentials: made.map(({ credential }) => credential) };
}
