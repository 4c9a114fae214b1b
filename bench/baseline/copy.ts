import { randomBytes, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { socketOptions } from "../../test/support/socket-options.ts";
import type { Fixture } from "../harness/fixture.ts";
import { run } from "../harness/program.ts";
import { isInstalled } from "../harness/tools.ts";

const COPY = `COPY api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
FROM STDIN`;

/** Rows of `api_keys` like those of an import, in the text format of COPY (PostgreSQL docs, COPY, "Text Format"). */
export function copyRows(count: number, importOf: (index: number) => ImportedRow): string {
  const now = new Date().toISOString();
  const line = (_: unknown, index: number) => {
    const { name, actor_id, scopes, metadata, raw_key } = importOf(index);
    const digest = `\\\\x${randomBytes(32).toString("hex")}`;
    const hint = `…${raw_key.slice(-4)}`;
    const fields = [uuidv7(), "imported", name, actor_id, `{${scopes.join(",")}}`, JSON.stringify(metadata), hint];
    return [...fields, now, now, digest, "bench"].join("\t");
  };
  return `${Array.from({ length: count }, line).join("\n")}\n`;
}

export interface ImportedRow {
  readonly name: string;
  readonly actor_id: string;
  readonly scopes: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly raw_key: string;
}

/** Returns the milliseconds of each COPY, each in its own transaction: by psql, or by the driver if psql is not installed. */
export function copy(fixture: Fixture, databaseUrl: string, batches: readonly string[]): Promise<number[]> {
  return COPY_PROGRAM === "psql" ? byPsql(fixture, databaseUrl, batches) : byDriver(databaseUrl, batches);
}

export const COPY_PROGRAM = isInstalled("psql") ? "psql" : "the driver, since psql is not installed";

/** psql measures the time itself, which excludes its own start. */
async function byPsql(fixture: Fixture, databaseUrl: string, batches: readonly string[]): Promise<number[]> {
  const script = join(fixture.dir, `copy-${randomUUID()}.sql`);
  await writeFile(script, ["\\timing on", ...batches.map((rows) => `${COPY};\n${rows}\\.`), ""].join("\n"));
  const output = await run(
    fixture.pinning.on("load", ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-f", script, databaseUrl]),
  );
  const milliseconds = [...output.matchAll(/^Time: ([\d.]+) ms/gm)].map(([, text]) => Number(text));
  if (milliseconds.length === batches.length) return milliseconds;
  throw new Error(`psql timed ${milliseconds.length} of ${batches.length}: ${output}`);
}

async function byDriver(databaseUrl: string, batches: readonly string[]): Promise<number[]> {
  const sql = postgres(databaseUrl, { ...socketOptions(databaseUrl), max: 1 });
  const milliseconds: number[] = [];
  for (const rows of batches) {
    const start = performance.now();
    await pipeline(Readable.from([rows]), await sql.unsafe(COPY).writable());
    milliseconds.push(performance.now() - start);
  }
  await sql.end();
  return milliseconds;
}
