import { readConfig } from "../server/config/config.ts";
import { openResources, type Resources } from "../server/resources.ts";

/** Runs a command on the database: that of a running server on this data folder, or one started for as long as it takes. */
export async function withResources<T>(run: (resources: Resources) => Promise<T>): Promise<T> {
  const log = (level: string, message: string) => {
    if (level !== "info") console.error(message);
  };
  const resources = await openResources(readConfig(), { log, ifRunning: "attach" });
  try {
    return await run(resources);
  } finally {
    await resources.close();
  }
}
