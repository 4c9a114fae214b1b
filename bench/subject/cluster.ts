import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Fixture } from "../harness/fixture.ts";
import type { ServerProcess } from "../harness/server.ts";
import { type Installation, install, startKeyhold } from "./installation.ts";

export interface Cluster {
  /** The first server, with the embedded database. */
  readonly installation: Installation;
  /** The other servers. */
  readonly others: readonly ServerProcess[];
}

/** Starts servers on one database; they share both cores. */
export async function startCluster(fixture: Fixture, size: number): Promise<Cluster> {
  const installation = await install(fixture);
  const others: ServerProcess[] = [];
  while (others.length + 1 < size) others.push(await startNode(fixture, installation));
  return { installation, others };
}

/** Starts another server on the database of an installation. */
export async function startNode(
  fixture: Fixture,
  { dataDir, serverUrl }: Pick<Installation, "dataDir" | "serverUrl">,
): Promise<ServerProcess> {
  const environment = {
    KEYHOLD_DATABASE_URL: serverUrl,
    KEYHOLD_ROOT_SECRET: (await readFile(join(dataDir, "root-secret"), "utf8")).trim(),
  };
  return startKeyhold(fixture, dataDir, environment, "both");
}
