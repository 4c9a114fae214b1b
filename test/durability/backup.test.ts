import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import postgres from "postgres";
import { afterAll, expect, test } from "vitest";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { readPage } from "../docs/blocks.ts";
import { derive } from "../support/conformance.ts";
import { type DataDir, eventually, newDataDir, type Serving, serve } from "../support/keyhold.ts";
import { type Ledger, newLedger } from "../support/ledger.ts";
import { issue, type Json, paths, type RestClient, restClient } from "../support/rest.ts";
import { seededBy } from "../support/seeded.ts";
import { startWriters } from "../support/writers.ts";

const [original, backup] = [newDataDir(), newDataDir()];
const servers: Serving[] = [];

afterAll(async () => {
  for (const server of servers) server.kill("SIGKILL");
  await Promise.all(servers.map(({ ended }) => ended));
  for (const dataDir of [original, backup]) {
    await eventually(async () => (await dataDir.processes()).length === 0);
    await dataDir.remove();
  }
});

async function startServer({ path }: DataDir): Promise<Serving> {
  const server = await serve({ KEYHOLD_DATA_DIR: path });
  servers.push(server);
  return server;
}

/** Returns its log. */
async function stopServer(server: Serving): Promise<string> {
  server.kill("SIGTERM");
  const ended = await server.ended;
  expect(ended).toMatchObject({ code: 0 });
  return ended.stdout;
}

/**
 * Copies the files of a running server, like backup tools (PostgreSQL docs, "Making a Base Backup Using the Low-Level API"). The copy
 * contains everything committed before `whileCopying` ended.
 */
async function backUp(from: DataDir, to: DataDir, whileCopying: () => Promise<void>): Promise<void> {
  const { superuserUrl } = await startEmbeddedPostgres({ dataDir: from.path, ifRunning: "attach", log: () => {} });
  const { hostname, username } = new URL(superuserUrl);
  const sql = postgres({ path: join(decodeURIComponent(hostname), ".s.PGSQL.5432"), user: username, max: 1 });
  const [cluster, copy] = [from, to].map(({ path }) => join(path, "postgres")) as [string, string];
  try {
    await sql`SELECT pg_backup_start('test', true)`;
    await copyFolder(from.path, to.path);
    await whileCopying();
    const [stop] = await sql<{ labelfile: string }[]>`SELECT labelfile FROM pg_backup_stop(false)`;
    await rm(join(copy, "pg_wal"), { recursive: true });
    await copyFolder(join(cluster, "pg_wal"), join(copy, "pg_wal"));
    await writeFile(join(copy, "backup_label"), stop?.labelfile ?? "");
  } finally {
    await sql.end();
  }
}

/** Preserves owners and modes. Files may change or disappear meanwhile, which tar reports with status 1. */
async function copyFolder(from: string, to: string): Promise<void> {
  const script = `mkdir -p "$2" && { tar -C "$1" --exclude=postmaster.* --exclude=.s.PGSQL.* -cf - . || [ $? = 1 ]; } | tar -C "$2" -xpf -`;
  await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script, "copy", from, to]);
}

async function verdictOf(rest: RestClient, credential: string): Promise<Json> {
  const { body } = await rest("POST", `${paths.keys}:verify`, { credential });
  return body.error_code ?? body.is_valid;
}

async function revoke(rest: RestClient, keyId: string): Promise<void> {
  const { status } = await rest("POST", `${paths.keys}/${keyId}:revoke`, {
    reason: "REVOCATION_REASON_KEY_COMPROMISE",
  });
  expect(status).toBe(200);
}

/** Revokes the keys changed since, by the log and the procedure of docs/operating.md. Returns the RPCs. */
async function repair(url: string, log: string, since: Date): Promise<string[]> {
  const block = readPage("docs/operating.md").blocks.find(({ text }) => text.includes("changed_since()"));
  const functions = block?.text.replaceAll("http://127.0.0.1:4420", url);
  const script = `${functions}\nlines=$(changed_since "$1" "$2"); echo "$lines"; echo "$lines" | revoke_again >/dev/null`;
  const file = join(backup.path, "log");
  await writeFile(file, log);
  const args = ["-euo", "pipefail", "-c", script, "repair", since.toISOString(), file];
  const { stdout } = await promisify(execFile)("bash", args);
  return stdout.split("\n").flatMap((line) => line.split(" ")[0] || []);
}

/** A key in the ledger that the writing clients do not know. */
async function keep(rest: RestClient, ledger: Ledger) {
  const { keyId, secret, record } = await issue(rest);
  const { name, scopes, metadata } = record;
  const condition = { fields: { name, scopes, metadata }, revoked: false, good: [secret], bad: [] };
  ledger.entries.push({ kind: "issued", keyId, possible: [condition] });
  return { keyId, secret };
}

test("a backup of a server under load contains every change acknowledged before it, and none after it", {
  timeout: 120_000,
}, async () => {
  const first = await startServer(original);
  const before = restClient(first);
  const ledger = newLedger();
  const writers = startWriters(before, ledger, seededBy("KEYHOLD_BACKUP_SEED"), 8);
  const [revoked, rotated] = [await keep(before, ledger), await keep(before, ledger)];
  const rotatedTwice = await keep(before, ledger);
  const [disabled, ...many] = [await keep(before, ledger), await keep(before, ledger), await keep(before, ledger)];
  await writers.acknowledged(80);
  await backUp(original, backup, async () => {
    await writers.acknowledged(40);
    await writers.stop();
  });
  expect(writers).toMatchObject({ unexpected: [], broken: 0 });
  const since = new Date();
  await revoke(before, revoked.keyId);
  const rotate = (rest: RestClient, keyId: string) => rest("POST", `${paths.issued}/${keyId}:rotate`, {});
  const rotation = await rotate(before, rotated.keyId);
  const lost = await rotate(before, rotatedTwice.keyId);
  const filter = many.map(({ keyId }) => `key_id="${keyId}"`).join(" OR ");
  const bulk = await before("POST", `${paths.keys}:bulkRevoke`, { filter });
  expect(bulk).toMatchObject({ status: 200, body: { changed_count: 2, done: true } });
  expect((await before("POST", `${paths.keys}/${disabled.keyId}:disable`, {})).status).toBe(200);
  const algorithms = ["TOKEN_ALGORITHM_JWT", "TOKEN_ALGORITHM_MACAROON"];
  const tokens = await Promise.all(
    algorithms.map(async (algorithm) => (await derive(before, lost.body.secret, { algorithm })).token),
  );
  const later = await issue(before);
  const log = await stopServer(first);

  const second = await startServer(backup);
  const after = restClient(second);
  expect(await ledger.differences(after)).toEqual([]);
  const credentials = [revoked.secret, rotated.secret, rotation.body.secret, later.secret];
  const verdicts = () => Promise.all(credentials.map((credential) => verdictOf(after, credential)));
  const [invalid, unknown] = ["VERIFICATION_ERROR_REVOKED", "VERIFICATION_ERROR_NOT_FOUND"];
  const rejected = [disabled, ...many].map(({ secret }) => secret);
  const verdictsOfRejected = () => Promise.all(rejected.map((credential) => verdictOf(after, credential)));
  // The risk of every restore: credentials revoked, disabled or rotated since the backup are valid again.
  expect(await verdicts()).toEqual([true, true, invalid, unknown]);
  expect(await verdictsOfRejected()).toEqual([true, true, true]);
  const ofTokens = () => Promise.all(tokens.map((token) => verdictOf(after, token)));
  expect(await ofTokens()).toEqual([invalid, invalid]);
  expect(await rotate(after, rotatedTwice.keyId)).toMatchObject({ status: 200 });
  expect(await ofTokens()).toEqual([invalid, invalid]);
  expect(await repair(second.url, log, since)).toEqual([
    ...["RevokeApiKey", "RotateIssuedApiKey", "RotateIssuedApiKey"],
    ...["BulkRevokeApiKeys", "BulkRevokeApiKeys", "DisableApiKey"],
  ]);
  expect(await verdicts()).toEqual([invalid, invalid, invalid, unknown]);
  expect(await verdictsOfRejected()).toEqual([invalid, invalid, invalid]);
});
