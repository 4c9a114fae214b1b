import { deepEqual } from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { GrpcClient } from "../faults/clients/grpc-client.ts";
import { type Database, startDatabase } from "../faults/database.ts";
import { eventually, runKeyhold, serve } from "../support/keyhold.ts";
import { issue, type Json, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { dumpTables, FIXTURE_FILE, type Fixture, type FixtureCredential } from "./fixture.ts";
import { COMMAND, COMMIT, installRelease, migrate } from "./release.ts";

/**
 * `node test/upgrade/make-fixture.ts` rewrites `release-0.1.json`: it runs release 0.1 from the history on an empty database, with one
 * root secret and then with another, creates credentials of every kind in every state, and records the verdict of that release on each.
 */

const comment = "Made by test/upgrade/make-fixture.ts for tests alone: these secrets protect nothing.";

/** Parents of both kinds of tokens: the others have a JWT, since the state of a key does not depend on the kind of its tokens. */
const MACAROON_PARENTS = ["active secret", "revoked secret", "secret in grace", "raw key"];

/** Credentials under the second root secret: the state of a key does not depend on the root secret. */
const UNDER_SECOND = [
  "active secret",
  "revoked secret",
  "raw key",
  "JWT of active secret",
  "MACAROON of active secret",
].map((name) => `${name}, second root secret`);

/** A credential and its name. */
type Named = readonly [name: string, credential: string];

interface Made {
  readonly credentials: readonly Named[];
  readonly requests: Fixture["requests"];
  /** A key that is rotated under the next root secret, and its secret. */
  readonly older: { readonly keyId: string; readonly secret: string };
}

const dir = await mkdtemp(join(tmpdir(), "keyhold-fixture-"));
await chmod(dir, 0o711);
try {
  const checkout = await installRelease(dir);
  const database = await startDatabase(dir, (url, role) => migrate(checkout, url, role));
  const fixture = await makeFixture(database, join(checkout, COMMAND)).finally(() => database.stop());
  await writeFile(FIXTURE_FILE, JSON.stringify(fixture));
  await promisify(execFile)("biome", ["format", "--write", fileURLToPath(FIXTURE_FILE)]);
} finally {
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
}
process.exit(0);

async function makeFixture(database: Database, main: string): Promise<Fixture> {
  const [first, second] = [newRootSecret(), newRootSecret()];
  const environment = { KEYHOLD_DATABASE_URL: database.url(database.port), KEYHOLD_LOG_LEVEL: "info" };
  const before = await withServer({ ...environment, KEYHOLD_ROOT_SECRET: first }, main, ({ rest }) =>
    makeCredentials("first root secret", rest),
  );
  const rotated = { ...environment, KEYHOLD_ROOT_SECRET: second, KEYHOLD_ROOT_SECRETS_RETIRED: first };
  await command(["signing-keys", "rotate", "--force"], rotated, main);
  return withServer(rotated, main, async ({ rest, grpc }) => {
    const after = await makeCredentials("second root secret", rest);
    const { older } = before;
    const newer = succeeded(await rest("POST", `${paths.issued}/${older.keyId}:rotate`, { grace_period: "30d" }));
    const adminTokens = [await newAdminToken(rotated, main), await newAdminToken(rotated, main)] as const;
    const { results } = succeeded(
      await rest("POST", `${paths.keys}:batchVerify`, { requests: [{ credential: adminTokens[1] }] }),
    );
    await revoke(rest, results[0].key_id);
    const named: Named[] = [
      ...before.credentials,
      ...after.credentials.filter(([name]) => UNDER_SECOND.includes(name)),
      ["secret in grace, rotated under another root secret", older.secret],
      ["secret after a rotation under another root secret", newer.secret],
      ["admin token", adminTokens[0]],
      ["revoked admin token", adminTokens[1]],
    ];
    const credentials: FixtureCredential[] = [];
    for (const [name, credential] of named)
      credentials.push({ name, credential, verdict: await verdictOn(credential, rest, grpc) });
    const listed = succeeded(await rest("GET", `${paths.issued}?page_size=3`));
    const token = encodeURIComponent(listed.next_page_token);
    const page = succeeded(await rest("GET", `${paths.issued}?page_size=3&page_token=${token}`));
    return {
      comment,
      commit: COMMIT,
      time: new Date().toISOString(),
      rootSecrets: [second, first],
      credentials,
      requests: [...before.requests, ...after.requests],
      adminTokens,
      jwks: succeeded(await rest("GET", paths.jwks)),
      page: { token: listed.next_page_token, keyIds: page.issued_api_keys.map((key: Json) => key.key_id) },
      tables: await dumpTables(database.admin),
    };
  });
}

interface Clients {
  readonly rest: RestClient;
  readonly grpc: GrpcClient;
}

async function withServer<T>(
  environment: Record<string, string>,
  main: string,
  work: (clients: Clients) => Promise<T>,
): Promise<T> {
  const server = await serve(environment, main);
  const grpc = new GrpcClient(Number(new URL(server.url).port));
  try {
    return await work({ rest: restClient(server), grpc });
  } finally {
    grpc.close();
    server.kill("SIGTERM");
    await server.ended;
  }
}

/** Creates one of each kind of resource of release 0.1. */
async function makeCredentials(under: string, rest: RestClient): Promise<Made> {
  const fields = (name: string) => ({
    ...{ name: `${name}, ${under}`, actor_id: "actor_1", scopes: ["read", "write"], metadata: { team: "a", under } },
    request_id: randomBytes(8).toString("hex"),
  });
  const [issuing, importing] = [fields("active"), { ...fields("active"), raw_key: newRawKey() }];
  const active = await issue(rest, issuing);
  const lasting = await issue(rest, { ...fields("expires later"), ttl: "365d" });
  const revoked = await issue(rest, fields("revoked"));
  const selfRevoked = await issue(rest, fields("self-revoked"));
  const expired = await issue(rest, { ...fields("expired"), ttl: "2s" });
  const graceful = await issue(rest, fields("rotated with grace"));
  const abrupt = await issue(rest, fields("rotated without grace"));
  const older = await issue(rest, fields("rotated later"));
  const imported = succeeded(await rest("POST", paths.imported, importing));
  const [revokedRaw, expiredRaw, deletedRaw] = [newRawKey(), newRawKey(), newRawKey()];
  const revokedImport = await importRaw(rest, { ...fields("revoked"), raw_key: revokedRaw });
  await importRaw(rest, { ...fields("expired"), raw_key: expiredRaw, ttl: "2s" });
  const deletedImport = await importRaw(rest, { ...fields("deleted"), raw_key: deletedRaw });
  const parents: Named[] = [
    ["active secret", active.secret],
    ["secret that expires later", lasting.secret],
    ["revoked secret", revoked.secret],
    ["self-revoked secret", selfRevoked.secret],
    ["expired secret", expired.secret],
    ["secret in grace", graceful.secret],
    ["secret rotated without grace", abrupt.secret],
    ["raw key", importing.raw_key],
    ["revoked raw key", revokedRaw],
    ["expired raw key", expiredRaw],
    ["deleted raw key", deletedRaw],
  ];
  const tokens: Named[] = [];
  for (const [name, credential] of parents) {
    tokens.push([`JWT of ${name}`, await derive(rest, credential, "JWT")]);
    if (MACAROON_PARENTS.includes(name))
      tokens.push([`MACAROON of ${name}`, await derive(rest, credential, "MACAROON")]);
  }
  const narrow = await derive(rest, active.secret, "JWT", { scopes: ["read"] });
  const rotation = succeeded(await rest("POST", `${paths.issued}/${graceful.keyId}:rotate`, { grace_period: "30d" }));
  const replacement = succeeded(await rest("POST", `${paths.issued}/${abrupt.keyId}:rotate`, {}));
  await revoke(rest, revoked.keyId);
  await revoke(rest, revokedImport.key_id);
  succeeded(await rest("POST", paths.selfRevoke, { credential: selfRevoked.secret }));
  succeeded(await rest("DELETE", `${paths.imported}/${deletedImport.key_id}`));
  for (const credential of [expired.secret, expiredRaw])
    await eventually(async () => !(await verify(rest, credential)).is_valid);
  const credentials: Named[] = [
    ...parents,
    ["secret after a rotation with grace", rotation.secret],
    ["secret after a rotation without grace", replacement.secret],
    ...tokens,
    ["JWT with one scope", narrow],
    ["MACAROON of a secret after its rotation", await derive(rest, rotation.secret, "MACAROON")],
    ["JWT of a secret after its rotation", await derive(rest, replacement.secret, "JWT")],
    ["raw key that was never imported", newRawKey()],
  ];
  const requests = [
    { path: paths.issued, body: issuing, keyId: active.keyId },
    { path: paths.imported, body: importing, keyId: imported.key_id },
  ];
  return { credentials: credentials.map(([name, text]) => [`${name}, ${under}`, text]), requests, older };
}

async function verdictOn(credential: string, rest: RestClient, grpc: GrpcClient): Promise<Json> {
  const verdict = await verify(rest, credential);
  deepEqual(await grpc.verify(credential), { status: 200, body: verdict });
  return verdict;
}

async function derive(rest: RestClient, credential: string, algorithm: string, more: Json = {}): Promise<string> {
  const request = { credential, algorithm: `TOKEN_ALGORITHM_${algorithm}`, ttl: "10d", ...more };
  return succeeded(await rest("POST", `${paths.keys}:derive`, request)).token.token;
}

async function importRaw(rest: RestClient, body: Json): Promise<Json> {
  return succeeded(await rest("POST", paths.imported, body));
}

async function revoke(rest: RestClient, keyId: string): Promise<void> {
  const reason = { reason: "REVOCATION_REASON_PRIVILEGE_WITHDRAWN", revocation_description: "left the company" };
  succeeded(await rest("POST", `${paths.keys}/${keyId}:revoke`, reason));
}

function succeeded({ status, body, text }: { status: number; body: Json; text: string }): Json {
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return body;
}

async function newAdminToken(environment: Record<string, string>, main: string): Promise<string> {
  return command(["admin", "token", "create", "--name", "fixture"], environment, main);
}

async function command(args: readonly string[], environment: Record<string, string>, main: string): Promise<string> {
  const { code, stdout, stderr } = await runKeyhold(args, environment, { main });
  if (code !== 0) throw new Error(`keyhold ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout.trim();
}

function newRawKey(): string {
  return `raw-${randomBytes(24).toString("base64url")}`;
}

function newRootSecret(): string {
  return `fixture-${randomBytes(32).toString("base64url")}`;
}
