import { randomUUID } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inject } from "vitest";
import { newRawKey, type Suite, useService } from "../../support/conformance.ts";
import { type Ended, eventually, runKeyhold } from "../../support/keyhold.ts";
import type { Json } from "../../support/rest.ts";

export const newFile = (extension: string) => join(inject("testDir"), `import-${randomUUID()}.${extension}`);

export interface TestRow {
  readonly raw_key: string;
  readonly name: string;
  readonly actor_id: string;
}

/** Returns rows of a new actor. */
export function newRows(count: number): TestRow[] {
  const actor_id = `import-${randomUUID()}`;
  return Array.from({ length: count }, (_, index) => ({ raw_key: newRawKey(), name: `row ${index + 1}`, actor_id }));
}

export async function writeRows(rows: readonly unknown[]): Promise<string> {
  const file = newFile("jsonl");
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

export const namesOf = (rows: readonly TestRow[]) => rows.map(({ name }) => name).sort();
export const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  );
export const readLines = async (file: string): Promise<Json[]> =>
  (await readFile(file, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** `keyhold keys import` and its server. Available within tests only. */
export interface ImportCommand {
  readonly suite: Suite;
  environment(): Record<string, string>;
  importKeys(file: string, ...options: string[]): Promise<Ended>;
  /** Returns the names of these rows' keys in the database, sorted. */
  stored(rows: readonly TestRow[]): Promise<string[]>;
  /** Blocks the call with the key of this name until it is released. */
  blockKey(name: string): Promise<{ isWaiting(): Promise<void>; release(): Promise<void> }>;
}

export function useImportCommand(): ImportCommand {
  const suite = useService();
  const environment = () => ({ KEYHOLD_URL: suite.server.url });
  return {
    suite,
    environment,
    importKeys: (file, ...options) => runKeyhold(["keys", "import", file, "--json", ...options], environment()),
    stored: async (rows) => {
      const found = await suite.sql`SELECT name FROM api_keys WHERE actor_id = ${rows[0]?.actor_id ?? ""}`;
      return found.map(({ name }) => name).sort();
    },
    blockKey: (name) => blockKey(suite, name),
  };
}

async function blockKey(suite: Suite, name: string) {
  const sql = await suite.sql.reserve();
  await sql`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock_shared(5); RETURN NEW; END $$`;
  await sql.unsafe(`CREATE TRIGGER wait_for_test BEFORE INSERT ON api_keys
    FOR EACH ROW WHEN (NEW.name = '${name}') EXECUTE FUNCTION wait_for_test()`);
  await sql`SELECT pg_advisory_lock(5)`;
  const waiting = async () => {
    const [row] = await sql`SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    return row?.count > 0;
  };
  const release = async () => {
    await sql`SELECT pg_advisory_unlock(5)`;
    await sql`DROP TRIGGER wait_for_test ON api_keys`;
    await sql`DROP FUNCTION wait_for_test`;
    sql.release();
  };
  return { isWaiting: () => eventually(waiting), release };
}
