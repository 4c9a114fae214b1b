import { chmod, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { migrate, readMigrations } from "../../src/postgres/migrations/migrate.ts";
import { bringUpToDate } from "../../src/postgres/migrations/schema.ts";
import { GrpcClient } from "../faults/clients/grpc-client.ts";
import { type ClusterNode, startCluster } from "../faults/cluster.ts";
import { type Database, startDatabase } from "../faults/database.ts";
import { openProxy } from "../faults/run.ts";
import { succeeded, table } from "../support/conformance.ts";
import { connect } from "../support/driver-client.ts";
import { type Json, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { seeded } from "../support/seeded.ts";
import { readFixture, restoreTables } from "./fixture.ts";

/**
 * A database created by release 0.1 (`release-0.1.json`), opened by the current release. Its root secrets and credentials are used only
 * in this test. The nodes use the clock of the fixture, so that its tokens never expire.
 */

const fixture = await readFixture();
const [root, ...retired] = fixture.rootSecrets;

/** Migrations of release 0.1. */
const MIGRATIONS = fixture.tables.schema_migrations?.length ?? 0;

let database: Database;
let node: ClusterNode;
let guarded: ClusterNode;
let grpc: GrpcClient;
let rest: RestClient;
let applied: readonly string[] = [];

beforeAll(async () => {
  const dir = await mkdtemp(join(inject("testDir"), "upgrade-"));
  await chmod(dir, 0o711);
  database = await startDatabase(dir, async (ownerUrl, serverRole) => {
    await restore(ownerUrl);
    applied = await bringUpToDate(ownerUrl, serverRole);
  });
  node = await startNode(dir, {});
  guarded = await startNode(dir, { KEYHOLD_AUTH: "admin-token" });
  grpc = new GrpcClient(node.port);
  rest = restClient(node);
});

afterAll(async () => {
  grpc?.close();
  await Promise.all([node?.close(), guarded?.close()]);
  await database?.stop();
});

async function restore(ownerUrl: string): Promise<void> {
  const sql = connect({ url: ownerUrl, statementTimeout: 0, prepare: false });
  try {
    await migrate(sql, (await readMigrations()).slice(0, MIGRATIONS));
    await restoreTables(sql, fixture.tables);
  } finally {
    await sql.end();
  }
}

async function startNode(dir: string, more: Record<string, string>): Promise<ClusterNode> {
  const environment = {
    KEYHOLD_ROOT_SECRET: root,
    KEYHOLD_ROOT_SECRETS_RETIRED: retired.join(","),
    KEYHOLD_LOG_LEVEL: "warn",
    ...more,
  };
  const cluster = startCluster(() => openProxy(database, seeded(1)), { nodes: 1, dir, environment, defect: null });
  const started: ClusterNode[] = [];
  for await (const one of cluster) {
    one.clockOffset = Date.parse(fixture.time) - Date.now();
    started.push(one);
  }
  const [only] = started;
  if (only === undefined) throw new Error("no node was started");
  return only;
}

test("the schema is migrated by the later migrations only", async () => {
  const all = (await readMigrations()).map(({ version, name }) => `${String(version).padStart(4, "0")}_${name}`);
  expect(applied).toEqual(all.slice(MIGRATIONS));
});

/**
 * Adds what later releases add to a verdict of release 0.1: lists are always present in JSON, and these tokens have no claims. The wording of
 * a message is no part of the API.
 */
function withNewFields(verdict: Json): Json {
  const isToken = /_(?:JWT|MACAROON)$/.test(verdict.credential_type ?? "");
  const message = verdict.error_message && { error_message: expect.any(String) };
  return { ...verdict, ...message, missing_scopes: [], limits: [], ...(isToken && { claims: {} }) };
}

test.for(table(fixture.credentials))("the verdict on $name is that of release 0.1", async ({ credential, verdict }) => {
  for (let round = 0; round < 2; round++) {
    expect(await verify(rest, credential)).toEqual(withNewFields(verdict));
    expect(await grpc.verify(credential)).toEqual({ status: 200, body: withNewFields(verdict) });
  }
});

test("all verdicts are the same in a batch", async () => {
  const requests = fixture.credentials.map(({ credential }) => ({ credential }));
  const { results } = succeeded(await rest("POST", `${paths.keys}:batchVerify`, { requests }));
  expect(results).toEqual(fixture.credentials.map((one) => withNewFields(one.verdict)));
});

test("the JWKS contains the keys that release 0.1 published", async () => {
  expect(succeeded(await rest("GET", paths.jwks))).toEqual(fixture.jwks);
});

test("a request that release 0.1 answered is not executed again", async () => {
  for (const { path, body, keyId } of fixture.requests) {
    const made = succeeded(await rest("POST", path, body));
    expect((made.issued_api_key ?? made).key_id).toBe(keyId);
  }
});

test("a raw key that release 0.1 imported is not imported again", async () => {
  for (const { path, body } of fixture.requests.filter(({ path }) => path === paths.imported)) {
    const answer = await rest("POST", path, { ...body, request_id: undefined });
    expect([answer.status, answer.body.error.details[0].reason]).toEqual([409, "RAW_KEY_ALREADY_EXISTS"]);
  }
});

test("a page token of release 0.1 returns the same page", async () => {
  const { token, keyIds } = fixture.page;
  const page = succeeded(await rest("GET", `${paths.issued}?page_size=3&page_token=${encodeURIComponent(token)}`));
  expect(page.issued_api_keys.map((key: Json) => key.key_id)).toEqual(keyIds);
});

test("admin tokens of release 0.1 grant the same permissions", async () => {
  const statuses = fixture.adminTokens.map(async (token) => {
    const { status } = await restClient(guarded, { authorization: `Bearer ${token}` })("GET", paths.issued);
    return status;
  });
  expect(await Promise.all(statuses)).toEqual([200, 401]);
});
