import { readConfig } from "../server/config/config.ts";
import { openResources, type Resources } from "../server/resources.ts";
import { note } from "./output.ts";

/** Runs a command on the database. Attaches to an embedded database that is running; otherwise starts it for the duration of the command. */
export async function withResources<T>(run: (resources: Resources) => Promise<T>): Promise<T> {
  const log = (level: string, message: string) => {
    if (level !== "info") note(message);
  };
  const resources = await openResources(readConfig(), { log, ifRunning: "attach" });
  try {
    return await run(resources);
  } finally {
    await resources.close();
  }
}
