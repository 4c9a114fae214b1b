import { randomBytes } from "node:crypto";
import { type DescMethodUnary, fromJson } from "@bufbuild/protobuf";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { type Collector, startCollector } from "../support/collector.ts";
import { table } from "../support/conformance.ts";
import { basicAsIs, INTROSPECT } from "../support/introspect.ts";
import { eventually, runKeyhold, type Serving, serve } from "../support/keyhold.ts";
import { HEADERS, HMAC_SECRET, hashedBy, PLACES, requests, rpc, type TestKeys } from "../support/misplaced-secrets.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { messageJson, type Protocol } from "../support/protocols/call.ts";
import { openProtocols } from "../support/protocols/protocols.ts";
import { type Json, paths } from "../support/rest.ts";
import { Secrets } from "../support/secrets.ts";
import { callGrpc, exchange, frame, RPCS, rpcPath, send } from "../support/wire.ts";

/** Secrets, which no log, no table and only the first response may contain; and stored values, which no log may contain. */
const secrets = new Secrets();
const storedByWill = new Secrets();
/** All responses, without the secrets that a response is meant to return. */
const answers: string[] = [];

let database: TestDatabase;
let sql: Sql;
/** One server that requires admin tokens, and one that accepts every caller. */
let guarded: Serving;
let open: Serving;
const clients = new Map<Serving, Protocol[]>();
let adminToken: string;
let collector: Collector;

const WANTED = ["gRPC", "gRPC-Web", "Connect in JSON", "REST"];

beforeAll(async () => {
  [database, collector] = await Promise.all([createTestDatabase(), startCollector()]);
  // The owner renames tables to break the database.
  sql = postgres(database.ownerUrl, { max: 1, onnotice: () => {} });
  const environment = {
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: secrets.add(randomBytes(32).toString("base64"), "the root secret"),
    KEYHOLD_ROOT_SECRETS_RETIRED: secrets.add(randomBytes(32).toString("base64"), "a retired root secret"),
    KEYHOLD_LOG_LEVEL: "trace",
    KEYHOLD_METRICS_PORT: "0",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  };
  secrets.add(HMAC_SECRET, "the key of HMACs");
  secrets.add(new URL(database.url).password, "the password of the database");
  const { stdout } = await runKeyhold(["admin", "token", "create", "--name", "test"], environment);
  adminToken = secrets.add(stdout.trim(), "an admin token");
  await runKeyhold(["cluster", "accept-database"], environment);
  const servers = ["admin-token", "none"].map((auth) => serve({ ...environment, KEYHOLD_AUTH: auth }));
  [guarded, open] = (await Promise.all(servers)) as [Serving, Serving];
  for (const server of [guarded, open]) {
    const protocols = openProtocols({ url: server.url, address: new URL(server.url).host });
    clients.set(
      server,
      protocols.filter(({ name }) => WANTED.includes(name)),
    );
    for (const protocol of protocols) if (!WANTED.includes(protocol.name)) protocol.close();
  }
});

afterAll(async () => {
  for (const protocol of [...clients.values()].flat()) protocol.close();
  collector.close();
  await sql.end();
  await database.drop();
});

function rawKey(): string {
  const raw = secrets.add(`raw_${randomBytes(30).toString("base64url")}`, "a raw key");
  secrets.add(hashedBy(raw).hash, "the hash of a raw key");
  return raw;
}

/** Calls an RPC, records the response for the search and returns it as JSON; undefined for an error. */
async function call(
  protocol: Protocol,
  method: DescMethodUnary,
  request: Json,
  headers: Record<string, string> = {},
): Promise<Json> {
  const reply = await protocol.call(method, fromJson(method.input, request), headers);
  const body = reply.ok ? messageJson(method.output, reply.message) : undefined;
  const shown = reply.ok ? [body.secret, body.token?.token].filter((secret) => typeof secret === "string") : [];
  for (const secret of shown) secrets.add(secret, `what ${method.name} showed`);
  const reported = reply.ok ? body : { ...reply, headers: undefined };
  answers.push(Secrets.without(JSON.stringify([reported, [...reply.headers]]), shown));
  return body;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function createTestKeys(protocol: Protocol): Promise<TestKeys> {
  const admin = bearer(adminToken);
  const key = { name: "a key", actor_id: "actor_1", scopes: ["read"] };
  const raw = rawKey();
  const quotas = [{ name: "monthly", limit: 1000, period: "QUOTA_PERIOD_MONTH" }];
  const issued = await call(protocol, rpc("CreateIssuedApiKey"), { ...key, quotas }, admin);
  const imported = await call(protocol, rpc("CreateImportedApiKey"), { ...key, raw_key: raw }, admin);
  const derive = (credential: string, algorithm: string) =>
    call(protocol, rpc("DeriveToken"), { credential, algorithm: `TOKEN_ALGORITHM_${algorithm}` }, admin);
  const jwt = (await derive(issued.secret, "JWT")).token.token;
  const macaroon = (await derive(raw, "MACAROON")).token.token;
  return { issued, imported, rawKey: raw, jwt, macaroon };
}

const allKeys: TestKeys[] = [];
const protocolsOf = (server: Serving) => clients.get(server) ?? [];

test("every RPC is called over every protocol, with valid and invalid requests", async () => {
  expect(protocolsOf(guarded).map(({ name }) => name)).toEqual(WANTED);
  for (const protocol of protocolsOf(guarded)) {
    const testKeys = await createTestKeys(protocol);
    allKeys.push(testKeys);
    const called = requests(testKeys, rawKey());
    expect(new Set(called.map(([method]) => method))).toEqual(new Set(RPCS));
    for (const [method, request] of called) await call(protocol, method, request, bearer(adminToken));
  }
});

test("every RPC is called with an invalid caller credential", async () => {
  for (const protocol of protocolsOf(guarded).filter(({ name }) => name === "gRPC" || name === "REST")) {
    const testKeys = await createTestKeys(protocol);
    const mistyped = secrets.add(`${adminToken.slice(0, -6)}aaaaaa`, "a mistyped admin token");
    const tokens = [mistyped, testKeys.issued.secret, testKeys.rawKey, testKeys.jwt, testKeys.macaroon].map(
      (token) => `Bearer ${token}`,
    );
    const basic = Buffer.from(`admin:${adminToken}`).toString("base64");
    const bad = [
      ...tokens,
      adminToken,
      `Basic ${basic}`,
      `Bearer ${adminToken}, Bearer ${mistyped}`,
      `Token ${adminToken}`,
    ];
    const refused = new Map(requests(testKeys, rawKey()).filter(([{ name }]) => name !== "SelfRevokeApiKey"));
    for (const authorization of bad) {
      await Promise.all([...refused].map(([method, request]) => call(protocol, method, request, { authorization })));
    }
  }
});

/** A secret without digits, as one of a thousand random ones is. */
const LETTERS = secrets.add(Array.from(randomBytes(40), (byte) => "aBcDefGhIjkLmnoP"[byte % 16]).join(""), "letters");

/** An issued secret, an imported raw key, a token and letters. */
function misplaced(): string[] {
  const testKeys = keysAt(0);
  return [adminToken, testKeys.rawKey, testKeys.jwt, LETTERS];
}

/** Records a response for the search. */
function keep(...parts: unknown[]): void {
  answers.push(parts.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join("\n"));
}

async function ask(
  url: string,
  method: string,
  body: string | undefined,
  headers: Record<string, string>,
): Promise<number> {
  const answer = await send(url, method, body, headers);
  keep(answer.text, [...answer.headers]);
  return answer.status;
}

describe.each(table(PLACES))("a secret instead of %s", (_, method, path, body) => {
  test("is in no response, neither over REST nor over Connect", async () => {
    for (const secret of misplaced()) {
      const headers = { ...bearer(adminToken), "content-type": "application/json" };
      const status = await ask(guarded.url + path(secret), method, body?.(secret), headers);
      expect([200, 400, 404, 405]).toContain(status);
      if (body === null) continue;
      expect(await ask(guarded.url + rpcPath(rpc("DeriveToken")), "POST", body(secret), headers)).toBe(400);
    }
  });
});

test.each(table(HEADERS))("a secret in the header %s is in no response", async (name) => {
  // A value no longer than a request id is accepted as one, and is logged.
  for (const secret of misplaced().filter(({ length }) => name !== "x-request-id" || length > 64)) {
    const headers = { "content-type": "application/json", [name]: secret };
    await ask(guarded.url + paths.issued, "POST", '{"name":"a","actor_id":"a"}', headers);
    await ask(open.url + rpcPath(rpc("VerifyApiKey")), "POST", '{"credential":"a"}', headers);
    const grpcHeaders = name === "content-type" ? {} : { [name]: secret };
    keep(await callGrpc(open.url, rpcPath(rpc("VerifyApiKey")), frame(Buffer.from("0a0161", "hex")), grpcHeaders));
  }
});

/** Forms of a request to introspect, with a secret. */
const FORMS = table<(secret: string) => string>([
  (s) => `token=${s}`,
  (s) => `token=${s}&token=${s}`,
  (s) => `token=${s}%zz`,
  (s) => `${s}`,
  (s) => `${s}=1&${s}=2`,
  (s) => `token=a&client_id=a&client_secret=${s}`,
  (s) => `token=a&client_ip=${s}&required_scopes=${s}&audience=${s}`,
  (s) => `token=a&required_scopes=+${s}&audience=+${s}`,
  (s) => `token=a&client_ip=${s.repeat(4)}`,
  (s) => JSON.stringify({ token: s }),
]);

test("secrets in a request to introspect are in no response", async () => {
  for (const secret of misplaced()) {
    const callers = [
      bearer(adminToken),
      basicAsIs("a", adminToken),
      ...[
        basicAsIs(secret, ""),
        basicAsIs("a", `${secret}a`),
        basicAsIs(secret, secret),
        { authorization: `Basic ${secret}` },
      ],
    ];
    for (const caller of callers) {
      for (const form of FORMS) {
        const headers = { "content-type": "application/x-www-form-urlencoded", ...caller };
        expect([200, 400, 401]).toContain(await ask(guarded.url + INTROSPECT, "POST", form(secret), headers));
        expect([200, 400]).toContain(await ask(open.url + INTROSPECT, "POST", form(secret), headers));
      }
      await ask(`${guarded.url}${INTROSPECT}?token=${secret}`, "POST", undefined, {
        "content-type": secret,
        ...caller,
      });
    }
  }
});

test("secrets in malformed HTTP or gRPC are in no response", async () => {
  for (const secret of misplaced()) {
    const address = new URL(guarded.url).host;
    keep(await exchange(address, `GET /${secret} HTTP/9.9\r\nAuthorization: Bearer ${secret}\r\n\r\n`));
    keep(await exchange(address, `GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nno header\r\n\r\n`));
    keep(await exchange(address, `${secret}\r\n\r\n`));
    keep(await exchange(address, `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${secret}`));
    const headers = `Host: a\r\nContent-Type: application/json\r\nAuthorization: Bearer ${adminToken}\r\nTransfer-Encoding: chunked`;
    keep(await exchange(address, `POST ${paths.keys}:verify HTTP/1.1\r\n${headers}\r\n\r\n${secret}\r\n`));
    for (const path of [`/${secret}`, `/${secret}/${secret}`, `/keyhold.v2alpha1.ApiKeysService/${secret}`]) {
      keep(await callGrpc(guarded.url, path, frame(Buffer.from(secret))));
    }
    keep(await callGrpc(open.url, rpcPath(rpc("VerifyApiKey")), Buffer.from(secret)));
    keep(await callGrpc(open.url, rpcPath(rpc("VerifyApiKey")), frame(Buffer.from(secret))));
    for (const protocol of protocolsOf(guarded).filter(({ name }) => name !== "REST")) {
      await call(protocol, Health.method.check, { service: secret });
    }
  }
});

test("stored names and values are not logged", async () => {
  const secret = storedByWill.add(`raw_${randomBytes(30).toString("base64url")}`, "a secret for a name");
  const body = { name: secret, actor_id: secret, scopes: [secret], metadata: { [secret]: secret }, request_id: secret };
  const answer = await send(open.url + paths.issued, "POST", JSON.stringify(body), {
    "content-type": "application/json",
  });
  expect(answer.status).toBe(200);
  secrets.add(answer.body.secret, "the secret of a key with a secret name");
  await send(`${open.url}${paths.issued}?filter=name%3D${secret}`, "GET", undefined);
});

/** A defect of the database, and the statement that repairs it. */
const FAILURES = [
  [
    "has lost its table",
    "ALTER TABLE api_keys RENAME TO api_keys_renamed",
    "ALTER TABLE api_keys_renamed RENAME TO api_keys",
  ],
  [
    "takes no row",
    "ALTER TABLE api_keys ADD CONSTRAINT nothing CHECK (name = 'nothing') NOT VALID",
    "ALTER TABLE api_keys DROP CONSTRAINT nothing",
  ],
] as const;

test.each(table(FAILURES))("every RPC is called while the database %s", async (_, breakIt, mendIt) => {
  await sql.unsafe(breakIt);
  const callers = [...protocolsOf(open), ...protocolsOf(guarded).filter(({ name }) => name === "REST")];
  for (const [index, protocol] of callers.entries()) {
    const headers = protocolsOf(open).includes(protocol) ? {} : bearer(adminToken);
    const all = requests(keysAt(index), rawKey());
    await Promise.all(all.map(([method, request]) => call(protocol, method, request, headers)));
  }
  const form = { "content-type": "application/x-www-form-urlencoded" };
  for (const secret of misplaced()) await ask(open.url + INTROSPECT, "POST", `token=${secret}`, form);
  await sql.unsafe(mendIt);
});

test("an RPC of each kind is called while the database has another password", async () => {
  const server = postgres(database.url, { max: 1 });
  await server`ALTER ROLE CURRENT_USER PASSWORD 'another'`;
  await server`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()`;
  const [protocol] = protocolsOf(open);
  const once = new Map(requests(keysAt(0), rawKey()));
  for (const name of ["CreateIssuedApiKey", "VerifyApiKey", "DeriveToken", "ListImportedApiKeys"]) {
    if (protocol !== undefined) await call(protocol, rpc(name), once.get(rpc(name)));
  }
  await ask(`${open.url}/health/ready`, "GET", undefined, {});
  await server.unsafe(`ALTER ROLE CURRENT_USER PASSWORD '${new URL(database.url).password}'`);
  await server.end();
});

function keysAt(index: number): TestKeys {
  const testKeys = allKeys[index % WANTED.length];
  if (testKeys === undefined) throw new Error("no keys were created");
  return testKeys;
}

/** No request has a prefix with a valid slow hash, no key expires soon, events that are pending move on, and no day of usage ends. */
const mayBeEmpty = (table: string) =>
  /^(key_usage_2|packed_usage|top_usage)/.test(table) ||
  ["hash_prefix_lengths", "expiry_notices", "limit_notices", "audit_pending"].includes(table);

test("no table contains a secret", async () => {
  const tables = await sql`SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`;
  // Partitions have the date in their name.
  expect(tables.flatMap(({ name }) => (/\d{6}/.test(name) ? [] : name)).sort()).toEqual([
    "accepted_databases",
    "actors",
    "api_keys",
    "audit_events",
    "audit_log",
    "audit_pending",
    "audit_tiles",
    "audit_tree",
    "audit_tree_key",
    "bulk_changes",
    "creators",
    "expiry_notices",
    "expiry_sweeps",
    "hash_prefix_lengths",
    "hash_schemes",
    "hmac_keys",
    "key_page_sessions",
    "key_usage",
    "limit_buckets",
    "limit_notices",
    "nodes",
    "packed_usage",
    "packed_usage_hours",
    "raw_key_digests",
    "schema_migrations",
    "signing_keys",
    "top_usage",
    "usage_by_hour",
    "usage_flushes",
    "usage_log",
    "used_root_secrets",
    "webhook_attempts",
    "webhook_deliveries",
    "webhook_endpoints",
  ]);
  // A job stores usage every 10 s.
  await eventually(async () => (await sql`SELECT FROM usage_flushes`).length > 0);
  for (const { name } of tables) {
    const rows = await sql`SELECT t::text AS text FROM ${sql(name)} AS t`;
    if (!mayBeEmpty(name)) expect([name, rows.length]).not.toEqual([name, 0]);
    expect(secrets.foundIn(rows.map(({ text }) => text).join("\n"))).toEqual([]);
  }
});

test("only the response that returns a secret contains it", () => {
  expect(answers.length).toBeGreaterThan(500);
  expect(secrets.foundIn(answers.join("\n"))).toEqual([]);
});

test("no metric contains a secret, or a value that a caller stored or sent", async () => {
  for (const server of [guarded, open]) {
    const { metrics } = await server.logged(`Keyhold is listening on ${server.url}`);
    const text = await (await fetch(metrics)).text();
    expect(text.match(/^keyhold_/gm)?.length).toBeGreaterThan(100);
    expect(secrets.foundIn(text)).toEqual([]);
    expect(storedByWill.foundIn(text)).toEqual([]);
  }
});

test("no log contains a secret", async () => {
  for (const server of [guarded, open]) server.kill("SIGTERM");
  const ended = await Promise.all([guarded.ended, open.ended]);
  const log = ended.map(({ stdout, stderr }) => stdout + stderr).join("\n");
  for (const { parent, name } of RPCS) expect(log).toContain(`"rpc":"${parent.typeName}/${name}"`);
  expect(log.split("\n").filter((line) => line.includes('"level":50')).length).toBeGreaterThan(100);
  expect(secrets.size).toBeGreaterThan(50);
  expect(secrets.foundIn(log)).toEqual([]);
  expect(storedByWill.foundIn(log)).toEqual([]);
  const lines: Json[] = log.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  const ofKeys = lines.filter(({ key_id }) => key_id !== undefined);
  expect(new Set(ofKeys.map(({ rpc }) => rpc.split("/")[1]))).toEqual(
    new Set([...RPCS.map(({ name }) => name).filter(isAboutOne), "Introspect"]),
  );
  expect(new Set(lines.flatMap(({ verdict }) => verdict ?? []))).toEqual(new Set(VERDICTS));
});

test("no span contains a secret", () => {
  expect(collector.spans().length).toBeGreaterThan(500);
  const text = collector.requests.map((request) => request.toString("latin1")).join("\n");
  expect(secrets.foundIn(text)).toEqual([]);
  expect(storedByWill.foundIn(text)).toEqual([]);
});

/** Whether calls of an RPC may concern one key; a batch import of one item does. */
const isAboutOne = (name: string) =>
  !/^(List|BatchVerify|Bulk|GetJwks|QueryUsage|WhoAmI|CreateKeyPageSession)|HmacKey|Actor|Audit|Webhook/.test(name);

const VERDICTS = ["INSUFFICIENT_SCOPE", "VALID", "INVALID_FORMAT", "SIGNATURE_INVALID", "NOT_FOUND", "REVOKED"];

const CODINGS: readonly (readonly [coding: string, write: (secret: string) => string])[] = [
  ["text", (secret) => `a ${secret} b`],
  ["half of it", (secret) => secret.slice(secret.length / 2)],
  ["a URL", (secret) => encodeURIComponent(secret)],
  ["JSON of a Buffer", (secret) => JSON.stringify({ err: { raw: Buffer.from(`a ${secret}`) } })],
  ["hexadecimal", (secret) => `\\x${Buffer.from(secret).toString("hex")}`],
  ["base64", (secret) => Buffer.from(`admin:${secret}`).toString("base64")],
  ["base64url within a longer text", (secret) => Buffer.from(`{"a":"${secret}"}`).toString("base64url")],
];

test.each(table(CODINGS))("the search finds a secret encoded as %s", (_, write) => {
  expect(secrets.foundIn(write(adminToken))).not.toEqual([]);
});
