/**
 * A process that owns an embedded server, for tests that kill it: `node owner.ts <data directory>`. Writes a line of JSON when the server is
 * ready or has failed to start. Stops the server at the end of stdin, or at SIGINT after one write.
 */
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { socketOptions } from "../support/socket-options.ts";

const [dataDir = ""] = process.argv.slice(2);

function say(message: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

try {
  const server = await startEmbeddedPostgres({ dataDir, log: () => {} });
  process.stdin.resume().once("end", async () => {
    await server.stop();
    process.exit();
  });
  process.once("SIGINT", async () => {
    const sql = postgres(server.url, { ...socketOptions(server.url), max: 1 });
    const rows = await sql`SELECT 'written' AS last`;
    say({ last: rows[0]?.last });
    await sql.end();
    await server.stop();
    process.exit();
  });
  say({ url: server.url, pid: server.pid });
} catch (error) {
  say({ error: String(error) });
  process.exitCode = 1;
}
