import { cutOff } from "./errors.ts";
import type { Database } from "./pool.ts";

/**
 * A database that is not asked while it is thought to be away: whoever asks hears so at once, instead of waiting for an answer that
 * will hardly come.
 */
export function unlessAway(database: Database, isAway: () => boolean): Database {
  return {
    run: (work, statement) => (isAway() ? Promise.reject(cutOff()) : database.run(work, statement)),
  };
}
