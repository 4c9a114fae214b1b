import { readConfig } from "../config.ts";
import { type Foundation, openFoundation } from "../foundation.ts";

/** Runs a command on the database: that of a running server on this data folder, or one started for as long as it takes. */
export async function withFoundation<T>(run: (foundation: Foundation) => Promise<T>): Promise<T> {
  const log = (level: string, message: string) => {
    if (level !== "info") console.error(message);
  };
  const foundation = await openFoundation(readConfig(), { log, ifRunning: "attach" });
  try {
    return await run(foundation);
  } finally {
    await foundation.close();
  }
}
