import { hostname } from "node:os";
import type { Database } from "./pool.ts";

const PREFIX = "keyhold: ";

/** Returns whether `writeServerLog` wrote a line of the server's log. */
export function isOurs(line: string): boolean {
  return line.startsWith(`LOG:  ${PREFIX}`);
}

/**
 * Writes a line with the event, these details, the user and the machine of this process to the log of the database server, because a direct change in
 * the database would be in no other log. `RAISE LOG` is written at any `log_min_messages` up to `log` and is not sent to the client.
 */
export async function writeServerLog(
  database: Database,
  event: string,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  const line = JSON.stringify({ event, ...details, uid: process.getuid?.(), host: hostname() });
  // A DO block takes no parameters, so the text is sent as hexadecimal.
  const text = `convert_from(decode('${Buffer.from(line).toString("hex")}', 'hex'), 'UTF8')`;
  await database.run((sql) => sql.unsafe(`DO $$ BEGIN RAISE LOG '${PREFIX}%', ${text}; END $$`), "server_log.write");
}
