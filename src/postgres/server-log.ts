import { hostname } from "node:os";
import type { Database } from "./pool.ts";

/** What our lines begin with. */
const PREFIX = "keyhold: ";

/** Returns whether `writeServerLog` wrote a line of the server's log. */
export function isOurs(line: string): boolean {
  return line.startsWith(`LOG:  ${PREFIX}`);
}

/**
 * Writes a line to the log of the database server, with these facts and the user and machine of this process. What a command changes in the
 * database itself would else be in no log. `RAISE LOG` is written whatever `log_min_messages` is, up to `log`, and not sent to the client.
 */
export async function writeServerLog(
  database: Database,
  event: string,
  facts: Readonly<Record<string, unknown>>,
): Promise<void> {
  const line = JSON.stringify({ event, ...facts, uid: process.getuid?.(), host: hostname() });
  // A DO block takes no parameters, so the text goes as hexadecimal.
  const text = `convert_from(decode('${Buffer.from(line).toString("hex")}', 'hex'), 'UTF8')`;
  await database.run((sql) => sql.unsafe(`DO $$ BEGIN RAISE LOG '${PREFIX}%', ${text}; END $$`), "server_log.write");
}
