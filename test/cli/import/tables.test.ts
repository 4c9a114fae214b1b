import { expect, test } from "vitest";
import { createKeyholdClient } from "../../../src/client/index.ts";
import { table } from "../../support/conformance.ts";
import { eventually } from "../../support/keyhold.ts";
import { exportBetterAuth, exportDjango, exportKong, exportUnkey, fileOf, readKeys } from "./export-queries.ts";
import { useImportCommand } from "./import-command.ts";

const { suite, importKeys } = useImportCommand();

interface MovedTable {
  readonly name: string;
  /** Resolves to the exported file. */
  readonly exported: () => Promise<string>;
  readonly options: readonly string[];
}

const sha = (algorithm: string, encoding: string) => ["--hash-algorithm", algorithm, "--hash-encoding", encoding];
const map = (...columns: string[]) => ["--map", ...columns];
const AUTH0 = map("phc=passwordHash", "lookup_prefix=client_id", "name=name", "actor_id=client_id");
const SHA256 = map("hash=key_hash", "name=label", "actor_id=owner_id", "metadata.old_id=id");

/** The tables were written by the code of each product (`tables/make-tables.py`, `tables/make-better-auth.mjs`). */
const TABLES = table<MovedTable>([
  { name: "unkey", exported: exportUnkey, options: sha("sha256", "base64") },
  { name: "better-auth", exported: () => exportBetterAuth(suite.sql), options: sha("sha256", "base64url") },
  {
    name: "sha256",
    exported: async () => fileOf("sha256.csv"),
    options: [...sha("sha256", "hex"), "--hash-prefix-file", fileOf("sha256.pepper"), ...SHA256],
  },
  { name: "bcrypt", exported: async () => fileOf("bcrypt.csv"), options: [] },
  { name: "pbkdf2", exported: () => exportDjango(suite.sql), options: sha("sha512", "hex") },
  { name: "auth0", exported: async () => fileOf("auth0.jsonl"), options: AUTH0 },
]);

/** Counts adoptions in the database itself, by key. */
async function countAdoptions(): Promise<() => Promise<readonly number[]>> {
  await suite.sql.unsafe(`
    CREATE TABLE IF NOT EXISTS adoptions (key_id uuid);
    TRUNCATE adoptions;
    CREATE OR REPLACE FUNCTION count_adoption() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      BEGIN INSERT INTO adoptions VALUES (NEW.key_id); RETURN NULL; END $$;
    CREATE OR REPLACE TRIGGER count_adoption AFTER UPDATE ON api_keys
      FOR EACH ROW WHEN (OLD.adopt_time IS DISTINCT FROM NEW.adopt_time) EXECUTE FUNCTION count_adoption()`);
  return async () => {
    const rows = await suite.sql`SELECT count(*)::int FROM adoptions GROUP BY key_id`;
    return rows.map(({ count }) => count);
  };
}

const notAdopted = async (name: string) => {
  const filter = `adopted = false AND name = "${name} *"`;
  const client = createKeyholdClient({ baseUrl: suite.server.url });
  return (await client.importedApiKeys.listImportedApiKeys({ filter, pageSize: 1000 })).importedApiKeys.length;
};

test.for(TABLES)("moves the table of $name", { timeout: 120_000 }, async ({ name, exported, options }) => {
  const file = await exported();
  const rawKeys = readKeys(name);
  const rows = rawKeys.length;
  const failures = `${file}.${Math.random()}.jsonl`;
  const importAgain = async (...more: string[]) => {
    const { code, stdout, stderr } = await importKeys(file, ...more, "--failures", failures, ...options);
    return { code, stderr, ...JSON.parse(stdout) };
  };
  expect(await importAgain("--dry-run")).toMatchObject({ code: 0, rows, valid: rows, failed: 0 });
  expect(await importAgain()).toMatchObject({ code: 0, rows, imported: rows, existing: 0, failed: 0 });
  expect(await notAdopted(name)).toBe(rows);

  const adoptions = await countAdoptions();
  const client = createKeyholdClient({ baseUrl: suite.server.url, timeoutMs: 60_000 });
  const verify = (credential: string) => client.apiKeys.verifyApiKey({ credential });
  const found = new Map<string, string>();
  for (const rawKey of rawKeys) {
    const wrong = await verify(`${rawKey.slice(0, -1)}${rawKey.endsWith("a") ? "b" : "a"}`);
    expect([wrong.isValid, wrong.errorCode]).toMatchObject([false, expect.any(Number)]);
    const verdicts = await Promise.all([verify(rawKey), verify(rawKey), verify(rawKey)]);
    const keyIds = new Set(verdicts.map(({ isValid, keyId = "" }) => (isValid ? keyId : "")));
    expect(keyIds.size).toBe(1);
    const [keyId = ""] = keyIds;
    expect(keyId).not.toBe("");
    found.set(keyId, rawKey);
  }
  expect(found.size).toBe(rows);
  await eventually(async () => (await notAdopted(name)) === 0);
  expect(await adoptions()).toEqual(Array.from({ length: rows }, () => 1));
  for (const [keyId, credential] of found) {
    const verdict = await client.apiKeys.verifyApiKey({ credential }, { headers: { "cache-control": "no-cache" } });
    expect(verdict).toMatchObject({ isValid: true, keyId });
  }
  expect(await adoptions()).toEqual(Array.from({ length: rows }, () => 1));
});

test("moves the credentials of Kong", async () => {
  const keys = Array.from({ length: 10 }, (_, index) => `kong-${index}-${Math.random().toString(36).slice(2)}`);
  const file = await exportKong(suite.sql, keys);
  const { code, stdout } = await importKeys(file);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { rows: 10, imported: 10, failed: 0 }]);
  const client = createKeyholdClient({ baseUrl: suite.server.url });
  const verdicts = await Promise.all(keys.map((credential) => client.apiKeys.verifyApiKey({ credential })));
  expect(verdicts.map(({ isValid }) => isValid)).toEqual(keys.map(() => true));
  expect(verdicts[0]).toMatchObject({ actorId: "kong 0", scopes: ["read", "write"] });
  expect(verdicts[1]).toMatchObject({ actorId: "00000000-0000-4000-8000-000000000001" });
});
