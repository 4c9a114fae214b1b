import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServerProcess } from "../harness/server.ts";
import type { Stage } from "../harness/stage.ts";
import { type Installation, install, startKeyhold } from "./installation.ts";

export interface Cluster {
  /** The first server, with the embedded database. */
  readonly installation: Installation;
  /** Those that share it. */
  readonly others: readonly ServerProcess[];
}

/** So many servers on one database, as on machines of their own but for the cores that they share. */
export async function startCluster(stage: Stage, size: number): Promise<Cluster> {
  const installation = await install(stage);
  const { dataDir, serverUrl } = installation;
  const environment = {
    KEYHOLD_DATABASE_URL: serverUrl,
    KEYHOLD_ROOT_SECRET: (await readFile(join(dataDir, "root-secret"), "utf8")).trim(),
  };
  const others: ServerProcess[] = [];
  while (others.length + 1 < size) others.push(await startKeyhold(stage, dataDir, environment, "both"));
  return { installation, others };
}
