import { randomBytes, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { socketOptions } from "../../test/support/socket-options.ts";
import { run } from "../harness/program.ts";
import type { Stage } from "../harness/stage.ts";
import { isInstalled } from "../harness/tools.ts";

const COPY = `COPY api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
FROM STDIN`;

/** Rows of `api_keys` as an import makes them, in COPY's text form (PostgreSQL docs, COPY, "Text Format"). */
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

/** The milliseconds of each COPY of these rows, a commit each: by psql, or by the driver where there is none. */
export function copy(stage: Stage, databaseUrl: string, batches: readonly string[]): Promise<number[]> {
  return COPY_PROGRAM === "psql" ? byPsql(stage, databaseUrl, batches) : byDriver(databaseUrl, batches);
}

export const COPY_PROGRAM = isInstalled("psql") ? "psql" : "the driver, since there is no psql";

/** Timed by psql itself, so that its start does not count. */
async function byPsql(stage: Stage, databaseUrl: string, batches: readonly string[]): Promise<number[]> {
  const script = join(stage.dir, `copy-${randomUUID()}.sql`);
  await writeFile(script, ["\\timing on", ...batches.map((rows) => `${COPY};\n${rows}\\.`), ""].join("\n"));
  const output = await run(
    stage.pinning.on("load", ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-f", script, databaseUrl]),
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
