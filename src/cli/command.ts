import { readConfig } from "../config.ts";
import { type Foundation, openFoundation } from "../foundation.ts";

/** Runs a command on the database: that of a running server on this data folder, or one started for as long as it takes. */
export async function withFoundation(run: (foundation: Foundation) => Promise<void>): Promise<void> {
  const log = (level: string, message: string) => {
    if (level !== "info") console.error(message);
  };
  const foundation = await openFoundation(readConfig(), { log, ifRunning: "attach" });
  try {
    await run(foundation);
  } finally {
    await foundation.close();
  }
}
