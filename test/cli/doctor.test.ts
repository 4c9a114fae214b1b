import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { evaluateUrl } from "../../src/cli/doctor/checks/database-url.ts";
import { evaluateSpace } from "../../src/cli/doctor/checks/machine.ts";
import { evaluateVersion } from "../../src/cli/doctor/checks/server-settings.ts";
import { type NamedFinding, runChecks } from "../../src/cli/doctor/run-checks.ts";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { prepareOwned } from "../../src/postgres/migrations/schema.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { rootSecretId } from "../../src/server/root-secrets/rings.ts";
import { start, usedDataDir } from "../embedded-postgres/support.ts";
import { importKey, newRawKey, succeeded, table } from "../support/conformance.ts";
import { importHashed, sha256Of } from "../support/hashed-keys.ts";
import { runKeyhold } from "../support/keyhold.ts";
import { listenLocally } from "../support/listen.ts";
import { startOidcIssuer } from "../support/oidc-issuer.ts";
import { runAsSuperuser, userOf } from "../support/postgres.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { metricsUrl } from "../support/scrape.ts";
import { ROOT_SECRET, startTestServer, type TestServer } from "../support/server.ts";
import { rotateUnder } from "../support/signing-keys.ts";
import { TcpProxy, withoutNotifications } from "../support/tcp-proxy.ts";

const OTHER = randomBytes(32).toString("base64url");
const DAY = 86_400_000;
const TLS = join(import.meta.dirname, "../support/tls");

let server: TestServer;
let owner: Sql;
let role: string;
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(inject("testDir"), "doctor-"));
  server = await startTestServer();
  owner = postgres(server.ownerUrl, { max: 1, onnotice: () => {} });
  role = userOf(server.databaseUrl);
  await issue(restClient(server));
  await importKey(restClient(server));
});

afterAll(async () => {
  await owner.end();
  await server.close();
});

/** The environment of a good installation, with overrides. */
const environment = (more: Record<string, string> = {}): Record<string, string> => ({
  KEYHOLD_DATABASE_URL: server.databaseUrl,
  KEYHOLD_ROOT_SECRET: ROOT_SECRET,
  KEYHOLD_PORT: "0",
  KEYHOLD_AUTH: "admin-token",
  ...more,
});

async function examineAs(more: Record<string, string>, ahead = 0): Promise<NamedFinding[]> {
  const findings = await runChecks(toConfig(environment(more)), { now: () => systemClock.now() + ahead });
  for (const { level, message, remedy } of findings) {
    expect({ message, hasRemedy: remedy !== null }).toEqual({ message, hasRemedy: level !== "ok" });
    expect(message + remedy).not.toMatch(
      new RegExp([ROOT_SECRET, OTHER, new URL(server.databaseUrl).password].join("|")),
    );
  }
  return findings;
}

/** Returns the findings of a check as `level message`. */
async function found(check: string, more: Record<string, string> = {}, ahead = 0): Promise<string[]> {
  const findings = (await examineAs(more, ahead)).filter((finding) => finding.check === check);
  return findings.map(({ level, message }) => `${level} ${message}`);
}

const ours = (url: string) => `ok a server is listening on port ${new URL(url).port}`;

/** Runs a statement as the owner, and reverts it when the test ends. */
async function during(change: string, undo: string): Promise<void> {
  onTestFinished(async () => void (await owner.unsafe(undo)));
  await owner.unsafe(change);
}

async function fileWith(name: string, text: string, mode = 0o600): Promise<string> {
  const file = join(dir, name);
  await writeFile(file, text);
  await chmod(file, mode);
  return file;
}

test("reports only the test database's durability settings and the environment", async () => {
  const trouble = (await examineAs({})).filter(({ level }) => level !== "ok");
  expect(trouble.map(({ check, level, message }) => [check, level, message])).toEqual([
    ["root_secret", "warning", "the root secret comes from the environment"],
    ...["fsync", "full_page_writes", "synchronous_commit"].map((name) => [
      "durability",
      "error",
      `${name} is off: a crash may lose a revocation`,
    ]),
  ]);
});

describe("local checks", () => {
  const CASES = table<readonly [string, Record<string, string>, readonly (string | RegExp)[]]>([
    ["access", { KEYHOLD_AUTH: "" }, ["warning every program on this machine has full access"]],
    ["access", { KEYHOLD_AUTH: "none" }, ["warning everyone who can reach the port has full access"]],
    [
      "access",
      { KEYHOLD_HOST: "0.0.0.0" },
      ["ok callers are authenticated by admin-token", "warning 0.0.0.0 is served without TLS"],
    ],
    [
      "access",
      { KEYHOLD_METRICS_HOST: "0.0.0.0", KEYHOLD_STALE_GRACE: "1h" },
      [
        /^ok/,
        /^warning the metrics on 0\.0\.0\.0 require no/,
        /^warning while .* a revoked key is accepted for up to 3600 s/,
      ],
    ],
    ["access", { KEYHOLD_METRICS_HOST: "::1", KEYHOLD_STALE_GRACE: "5m" }, [/^ok/]],
    [
      "gateways",
      {
        ...{ KEYHOLD_GATEWAYS: "ext-authz", KEYHOLD_GATEWAY_CREDENTIALS: "query:key" },
        ...{ KEYHOLD_GATEWAY_PORT: "0", KEYHOLD_GATEWAY_HOST: "::" },
      },
      [
        /^warning :: is served to gateways without TLS/,
        /^warning credentials are accepted in the URL query/,
        /^ok Envoy/,
        /^ok /,
      ],
    ],
    [
      "port",
      { KEYHOLD_HOST: "203.0.113.1", KEYHOLD_PORT: "4420", KEYHOLD_METRICS_PORT: "off" },
      [/^error cannot listen on 203.* \(EADDRNOTAVAIL\)/],
    ],
    [
      "oidc",
      { KEYHOLD_AUTH: "oidc", KEYHOLD_OIDC_ISSUER: "http://127.0.0.1:1", KEYHOLD_OIDC_AUDIENCE: "a" },
      [/^error cannot read http:\/\/127.0.0.1:1\/.well-known/],
    ],
    ["gateways", {}, []],
    [
      "gateways",
      { KEYHOLD_GATEWAYS: "forward-auth", KEYHOLD_TRUSTED_PROXIES: "10.0.0.0/8" },
      ["ok gateways use forward-auth, authenticated by token"],
    ],
    [
      "gateways",
      { KEYHOLD_GATEWAYS: "ext-authz", KEYHOLD_GATEWAY_CALLERS: "token,network", KEYHOLD_GATEWAY_NETWORKS: "10.0.0.1" },
      [/^ok Envoy must set encode_raw_headers: true/, "ok gateways use ext-authz, authenticated by token or network"],
    ],
    [
      "gateways",
      { KEYHOLD_GATEWAYS: "forward-auth", KEYHOLD_AUTH: "" },
      [
        /^warning requests from gateways are rejected: requests through a proxy require KEYHOLD_AUTH/,
        /^warning keys that are restricted to addresses are rejected/,
        /^ok /,
      ],
    ],
    [
      "gateways",
      { KEYHOLD_GATEWAYS: "ext-authz", KEYHOLD_AUTH: "admin-token,none" },
      ['warning gateways need no token, because KEYHOLD_AUTH contains "none"', /^ok Envoy/, /^ok /],
    ],
    ["tls", { KEYHOLD_TLS_CERT_FILE: "/no.pem", KEYHOLD_TLS_KEY_FILE: "/no.pem" }, [/^error the check failed: ENOENT/]],
    ["root_secret", { KEYHOLD_ROOT_SECRET: "", KEYHOLD_ROOT_SECRET_FILE: "/no" }, [/^error ENOENT/]],
  ]);
  test.each(CASES)("check %s with %j", async (check, more, expected) => {
    const matchers = expected.map((one) => (typeof one === "string" ? one : expect.stringMatching(one)));
    expect(await found(check, more)).toEqual(matchers);
  });

  test("a port is free, used by a Keyhold server, or by another program", async () => {
    const port = (url: string, variable = "KEYHOLD_PORT", more: Record<string, string> = {}) =>
      found("port", { KEYHOLD_METRICS_PORT: "off", ...more, [variable]: new URL(url).port });
    expect(await port(server.url)).toEqual([ours(server.url)]);
    const tls = {
      KEYHOLD_TLS_CERT_FILE: join(TLS, "localhost.cert.pem"),
      KEYHOLD_TLS_KEY_FILE: join(TLS, "localhost.key.pem"),
    };
    const secure = await startTestServer({ KEYHOLD_DATABASE_URL: server.databaseUrl, ...tls });
    expect(await port(secure.url, "KEYHOLD_PORT", tls)).toEqual([ours(secure.url)]);
    await secure.close();
    const other = createServer((socket) => socket.destroy());
    const taken = `http://127.0.0.1:${await listenLocally(other)}`;
    const refused = `error another program is using port ${new URL(taken).port}`;
    expect(await port(taken)).toEqual([refused]);
    const some = { KEYHOLD_PORT: "0" };
    expect(await port(taken, "KEYHOLD_METRICS_PORT", some)).toEqual([expect.stringMatching(/^ok/), refused]);
    other.close();
    await once(other, "close");
    expect(await port(taken)).toEqual([`ok port ${new URL(taken).port} is free: no server is running here`]);
  });

  test("recognizes the metrics port of a Keyhold server", async () => {
    const other = await startTestServer({ KEYHOLD_DATABASE_URL: server.databaseUrl, KEYHOLD_METRICS_PORT: "0" });
    const url = metricsUrl(other.log());
    const some = { KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: new URL(url).port };
    expect(await found("port", some)).toContain(ours(url));
    await other.close();
  });

  test("a certificate is valid, expires soon, has expired, or does not match the key", async () => {
    const pair = (key: string) => ({
      KEYHOLD_TLS_CERT_FILE: join(TLS, "localhost.cert.pem"),
      KEYHOLD_TLS_KEY_FILE: join(TLS, `${key}.key.pem`),
    });
    const [good = ""] = await found("tls", pair("localhost"));
    expect(good).toMatch(/^ok the certificate is valid until 2/);
    const left = Date.parse(good.split(" until ")[1] ?? "") - systemClock.now();
    expect(await found("tls", pair("localhost"), left - DAY)).toEqual([good.replace("ok", "warning")]);
    expect((await found("tls", pair("localhost"), left + DAY))[0]).toMatch(/^error the certificate expired at/);
    expect((await found("tls", pair("renewed")))[0]).toMatch(/^error .*renewed.key.pem is not the key of/);
  });

  test("a reachable issuer passes", async () => {
    const oidc = await startOidcIssuer();
    onTestFinished(() => oidc.close());
    const more = { KEYHOLD_AUTH: "oidc", KEYHOLD_OIDC_ISSUER: oidc.issuer, KEYHOLD_OIDC_AUDIENCE: oidc.audience };
    expect(await found("oidc", more)).toEqual([`ok the signing keys of ${oidc.issuer} can be fetched`]);
    expect((await found("oidc", { ...more, KEYHOLD_OIDC_ISSUER: `${oidc.issuer}/` }))[0]).toMatch(/a different issuer/);
  });

  test("a root secret file is private, readable by others, or empty", async () => {
    const by = (file: string) => found("root_secret", { KEYHOLD_ROOT_SECRET: "", KEYHOLD_ROOT_SECRET_FILE: file });
    const good = await fileWith("private", `${ROOT_SECRET}\n`, 0o640);
    expect(await by(good)).toEqual([`ok the root secret is in ${good}`]);
    const open = await fileWith("open", `${ROOT_SECRET}\n`, 0o644);
    expect(await by(open)).toEqual([`warning other users can read ${open}`]);
    const short = await fileWith("short", "too short\n");
    expect((await by(short)).at(-1)).toMatch(/^error .*must have at least 32 random characters/);
  });

  test("a remote database needs TLS with certificate verification", async () => {
    const evaluate = (host: string, query = "") =>
      evaluateUrl("KEYHOLD_DATABASE_URL", `postgres://keyhold:p4ssw0rd@${host}/keyhold${query}`)
        .map(({ level, message }) => `${level} ${message}`)
        .join();
    for (const query of table(["", "?sslmode=disable", "?ssl=false"]))
      expect(evaluate("db.example", query)).toMatch(
        /^warning KEYHOLD_DATABASE_URL connects to db.example without TLS: /,
      );
    for (const mode of table(["allow", "prefer", "require"]))
      expect(evaluate("10.0.0.1:5433", `?sslmode=${mode}`)).toContain(
        `warning KEYHOLD_DATABASE_URL connects to 10.0.0.1 without verifying its certificate (sslmode=${mode})`,
      );
    for (const query of table(["?sslmode=verify-full", "?sslmode=require&sslrootcert=system"]))
      expect(evaluate("db.example", query)).toBe("ok KEYHOLD_DATABASE_URL verifies the certificate of db.example");
    for (const host of table(["127.0.0.1", "localhost:5433", "[::1]", "%2Frun%2Fpostgresql"]))
      expect(evaluate(host)).toBe("");
    const more = { KEYHOLD_DATABASE_MIGRATE_URL: "postgres://owner@db.example/keyhold" };
    expect(await found("database_tls", more)).toEqual([expect.stringMatching(/^warning KEYHOLD_DATABASE_MIGRATE_URL/)]);
  });

  test("evaluates free disk space", () => {
    const levels = [2, 0.5, 0.05].map((free) => evaluateSpace({ bavail: free * 1024 ** 3, bsize: 1 }).level);
    expect(levels).toEqual(["ok", "warning", "error"]);
  });
});

describe("database checks", () => {
  test("an unreachable database is an error, and the other checks run", async () => {
    const findings = await examineAs({ KEYHOLD_DATABASE_URL: "postgres://me:secret@127.0.0.1:1/none" });
    expect(findings.find(({ check }) => check === "database")).toMatchObject({
      level: "error",
      message: /ECONNREFUSED/,
    });
    expect(findings.map(({ check }) => check)).toContain("access");
    expect(JSON.stringify(findings)).not.toContain("secret@");
  });

  test("evaluates the version", () => {
    const levels = [140_020, 150_000, 180_004].map(
      (versionNumber) => evaluateVersion({ versionNumber, version: "" }).level,
    );
    expect(levels).toEqual(["error", "ok", "ok"]);
  });

  test("a read-only database is an error", async () => {
    const self = postgres(server.databaseUrl, { max: 1 });
    onTestFinished(async () => {
      await self`SET default_transaction_read_only = off`;
      await self`ALTER ROLE CURRENT_USER RESET default_transaction_read_only`;
      await self.end();
    });
    await self`ALTER ROLE CURRENT_USER SET default_transaction_read_only = on`;
    expect(await found("database_version")).toEqual(["error the database is read-only"]);
  });

  const SESSION_SETTINGS = table([
    ["ROLE $role", "bytea_output", "escape", "foreign"],
    ["DATABASE $database", "DateStyle", "German, DMY", "foreign"],
    ["ROLE $role IN DATABASE $database", "search_path", "elsewhere", "foreign"],
    ["ROLE $role", "statement_timeout", "5s", "foreign"],
    ["ROLE $role", "bytea_output", "HEX", "usable"],
    ["ROLE $role", "statement_timeout", "1min", "usable"],
    ["DATABASE $database", "search_path", "elsewhere, public", "usable"],
    ["ROLE $role", "work_mem", "8MB", "usable"],
  ] as const);

  test.each(SESSION_SETTINGS)("ALTER %s SET %s = %s", async (where, name, value, kind) => {
    const names: Record<string, string> = { role, database: new URL(server.databaseUrl).pathname.slice(1) };
    const target = where.replaceAll(/\$(\w+)/g, (_, of) => names[of] ?? "");
    onTestFinished(async () => void (await runAsSuperuser([`ALTER ${target} RESET ${name}`])));
    await runAsSuperuser([`ALTER ${target} SET ${name} = '${value}'`]);
    const finding = expect.stringMatching(
      `^warning ALTER ${target} SET ${name} = '${value}': Keyhold overrides this setting`,
    );
    const isOk = expect.stringMatching("^ok the database and the role do not change session settings");
    expect(await found("session_settings")).toEqual([kind === "foreign" ? finding : isOk]);
  });

  test("an outdated or unreadable schema is an error", async () => {
    const row = (await owner`DELETE FROM schema_migrations WHERE version = 5 RETURNING *`)[0];
    expect(await found("schema")).toEqual(["error the schema lacks 0005_used_root_secrets"]);
    await owner`INSERT INTO schema_migrations ${owner(row ?? {})}`;
    await during(`REVOKE SELECT ON schema_migrations FROM ${role}`, `GRANT SELECT ON schema_migrations TO ${role}`);
    expect(await found("schema")).toEqual(["error the servers' role cannot read the schema"]);
  });

  const RIGHTS = table([
    ["REVOKE DELETE ON nodes FROM $", "GRANT DELETE ON nodes TO $", /^error role \w+ lacks DELETE on nodes$/],
    [
      "GRANT TRUNCATE ON nodes TO $",
      "REVOKE TRUNCATE ON nodes FROM $",
      /^warning role \w+ has unneeded privileges: TRUNCATE on nodes$/,
    ],
    [
      "GRANT CREATE ON SCHEMA public TO $",
      "REVOKE CREATE ON SCHEMA public FROM $",
      /^warning role \w+ can create tables$/,
    ],
  ] as const);
  test.each(RIGHTS)("rights: %s", async (change, undo, expected) => {
    await during(change.replace("$", role), undo.replace("$", role));
    expect(await found("rights")).toEqual([expect.stringMatching(expected)]);
  });

  test("a role that owns the schema is a warning is a warning", async () => {
    const more = { KEYHOLD_DATABASE_URL: server.ownerUrl };
    expect(await found("rights", more)).toEqual([expect.stringMatching(/^warning role \w+ owns the schema/)]);
  });

  test("connections that exceed the limit, or would with all servers", async () => {
    expect(await found("connections", { KEYHOLD_DATABASE_POOL_SIZE: "1000" })).toEqual([
      expect.stringMatching(/^error 1 process\(es\) with 1010 connections each exceed/),
    ]);
    const join = "INSERT INTO nodes (lease_id, name, version, ttl_ms) SELECT gen_random_uuid(), 'many', '1', 600000";
    await during(`${join} FROM generate_series(1, 20)`, "DELETE FROM nodes WHERE name = 'many'");
    expect(await found("connections")).toEqual([
      expect.stringMatching(/^warning 21 running process\(es\) may use 420 of 1/),
    ]);
  });

  test("clock skew is reported", async () => {
    expect(await found("clock", {}, 5_000)).toEqual([
      "warning the clocks of this machine and the database differ by 5.0 s",
    ]);
    expect(await found("clock", {}, -120_000)).toEqual([expect.stringMatching(/^error .* differ by (119|120)\.\d s$/)]);
  });

  test("admin tokens that expire within 14 days, or did, if they are in use", async () => {
    const rest = restClient(server);
    const { keyId } = await issue(rest, { name: "edge", scopes: ["keyhold:verify"], ttl: "13d" });
    const { keyId: other } = await issue(rest, { scopes: ["read"], ttl: "13d" });
    await owner`UPDATE api_keys SET last_used_time = now() WHERE key_id <> ${keyId}`;
    const none = ["ok no admin token in use expires within 14 days"];
    const token = String.raw`the admin token "edge" \(${keyId}, keyhold:verify\)`;
    const expired = [expect.stringMatching(`^error ${token} expired at 2.*Z but is still in use$`)];
    const used = (days: number) =>
      owner`UPDATE api_keys SET last_used_time = now() + ${`${days} days`}::interval WHERE key_id = ${keyId}`;
    expect(await found("admin_tokens")).toEqual(none);
    await used(-3);
    expect(await found("admin_tokens")).toEqual(none);
    await used(0);
    expect(await found("admin_tokens")).toEqual([
      expect.stringMatching(`^warning ${token} is in use and expires at 2.*Z$`),
    ]);
    expect(await found("admin_tokens", {}, -2 * DAY)).toEqual(none);
    expect(await found("admin_tokens", {}, 14 * DAY)).toEqual(none);
    await used(12);
    expect(await found("admin_tokens", {}, 14 * DAY)).toEqual(expired);
    expect(await found("admin_tokens", {}, 28 * DAY)).toEqual(none);
    await rest("POST", `${paths.keys}/${keyId}:revoke`, {});
    expect(await found("admin_tokens", {}, 14 * DAY)).toEqual(none);
    await owner`DELETE FROM api_keys WHERE key_id IN (${keyId}, ${other})`;
  });

  test("the index of admin tokens has every scope over Keyhold", async () => {
    const [index] = await owner`SELECT pg_get_expr(indpred, indrelid) AS text FROM pg_index
      WHERE indexrelid = 'api_keys_admin_tokens'::regclass`;
    expect(/'\{(.*)\}'/.exec(index?.text)?.[1]?.split(",")).toEqual([...ADMIN_SCOPES]);
  });

  test("a transaction pooler drops notifications; a direct listen URL avoids it", async () => {
    const proxy = await TcpProxy.start(server.databaseUrl, { filter: withoutNotifications });
    onTestFinished(() => void proxy.close());
    const lost = ["error no notification arrived within 3 s"];
    const past = { KEYHOLD_DATABASE_URL: proxy.url, KEYHOLD_DATABASE_LISTEN_URL: server.databaseUrl };
    const [pooled, wrong, good] = await Promise.all([
      found("notifications", { KEYHOLD_DATABASE_URL: proxy.url }),
      found("notifications", { KEYHOLD_DATABASE_LISTEN_URL: proxy.url }),
      found("notifications", past),
    ]);
    expect([pooled, wrong, good]).toEqual([lost, lost, [expect.stringMatching(/^ok a notification arrived within/)]]);
  });
});

describe("secrets", () => {
  test("a root secret of another database", async () => {
    const more = { KEYHOLD_ROOT_SECRET: OTHER };
    expect(await found("root_secret_use", more)).toEqual([
      expect.stringMatching(/^ok root secret \w+ \(current\): 0 issued/),
      expect.stringMatching(/^error root secret \w+ \(missing\): 1 issued and 1 imported keys/),
    ]);
    expect(await found("signing_keys", more)).toEqual([
      expect.stringMatching(/^error signing key \S+ cannot be unwrapped$/),
    ]);
  });

  test("a retired root secret that is still needed, and one that is not", async () => {
    const retired = (secret: string) => ({ KEYHOLD_ROOT_SECRETS_RETIRED: secret });
    expect((await found("root_secret_use", retired(OTHER)))[1]).toMatch(/^ok root secret \w+ \(staged\): 0 issued/);
    const used = `used_root_secrets (digest_key_id) VALUES ('${rootSecretId(OTHER)}')`;
    await during(`INSERT INTO ${used}`, `DELETE FROM used_root_secrets WHERE digest_key_id = '${rootSecretId(OTHER)}'`);
    expect((await found("root_secret_use", retired(OTHER)))[1]).toMatch(
      /^warning root secret \w+ \(retired\): 0 issued/,
    );
    const needed = { KEYHOLD_ROOT_SECRET: OTHER, ...retired(ROOT_SECRET) };
    expect((await found("root_secret_use", needed))[1]).toMatch(
      /^ok root secret \w+ \(retired\): 1 issued .* 2 signing keys$/,
    );
  });

  test("raw keys possibly stored twice by an earlier release, and those known to differ", async () => {
    const [first, second] = [rootSecretId(ROOT_SECRET), rootSecretId(OTHER)];
    const differ = JSON.stringify([{ digest: "ab".repeat(32), digest_key_id: first }]);
    const rows = [
      ["a", "…beef", first, null],
      ["b", "…beef", second, null],
      ["c", "…beef", second, differ],
      ["short", "", first, null],
      ["short", "", second, null],
      ["another short", "", second, null],
    ].map(([name, hint, digest_key_id, other_digests], place) => ({
      ...{ key_id: `0198b2a4-7d3e-7c52-a1f0-00000000000${place}`, digest: `\\x${String(place).repeat(64)}` },
      ...{ name, hint, digest_key_id, other_digests },
    }));
    expect(await found("raw_keys")).toEqual(["ok no raw key appears to be stored twice"]);
    onTestFinished(async () => void (await owner`DELETE FROM api_keys WHERE actor_id = 'twice'`));
    await owner`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id, other_digests)
      SELECT key_id, 'imported', name, 'twice', '{}', '{}', hint, now(), now(), digest, digest_key_id, other_digests::jsonb
      FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
        AS row (key_id uuid, name text, hint text, digest bytea, digest_key_id text, other_digests text)`;
    const idAt = (place: number) => rows[place]?.key_id;
    expect(await found("raw_keys")).toEqual([
      `warning imported keys that may have the same raw key: ${idAt(0)} and ${idAt(1)}; ${idAt(3)} and ${idAt(4)}`,
    ]);
    await owner`
      UPDATE api_keys SET revoke_time = now(), revocation_reason = 'REVOCATION_REASON_SUPERSEDED' WHERE hint = '' AND actor_id = 'twice'`;
    await owner`DELETE FROM api_keys WHERE key_id = ${idAt(1) ?? ""}`;
    expect(await found("raw_keys")).toEqual(["ok no raw key appears to be stored twice"]);
  });

  test("an old signing key, and a retired one that cannot be unwrapped", async () => {
    expect((await found("signing_keys", {}, 400 * DAY))[0]).toMatch(/^warning signing key \S+, (399|400) days old$/);
    await owner`UPDATE signing_keys SET tokens_expire_time = now() + interval '1 day'`;
    await rotateUnder(owner, { root: OTHER, retired: [ROOT_SECRET] });
    expect(await found("signing_keys", { KEYHOLD_ROOT_SECRET: OTHER })).toEqual([
      expect.stringMatching(/^warning retired signing key \S+, tokens valid until \S+, cannot be unwrapped$/),
      expect.stringMatching(/^ok signing key/),
    ]);
    await rotateUnder(owner, { root: ROOT_SECRET, retired: [OTHER] });
  });

  test("hash secrets that cannot be unwrapped", async () => {
    expect(await found("hash_secrets")).toEqual([]);
    const rest = restClient(server);
    const hmacKey = { hmac_key_id: "h", key: "secret", encoding: "TEXT_ENCODING_UTF8" };
    succeeded(await rest("POST", paths.hmacKeys, hmacKey));
    const rawKey = newRawKey();
    await importHashed(rest, {}, rawKey, sha256Of(rawKey, "salt:"));
    expect(await found("hash_secrets")).toEqual(["ok 2 hash formats and HMAC keys can be unwrapped"]);
    expect(await found("hash_secrets", { KEYHOLD_ROOT_SECRET: OTHER })).toEqual([
      "error HMAC key h cannot be unwrapped",
      expect.stringMatching(/^error hash format \d+ cannot be unwrapped$/),
    ]);
    const needed = { KEYHOLD_ROOT_SECRET: OTHER, KEYHOLD_ROOT_SECRETS_RETIRED: ROOT_SECRET };
    expect((await found("root_secret_use", needed))[1]).toMatch(/, 2 wrapped hash formats and HMAC keys$/);
    await owner`DELETE FROM api_keys WHERE hash_algorithm IS NOT NULL`;
    await owner`DELETE FROM hash_schemes`;
    await owner`DELETE FROM hmac_keys`;
  });

  test("webhook secrets that cannot be unwrapped", async () => {
    expect(await found("webhook_secrets")).toEqual([]);
    const endpoint = { endpoint_id: "w", url: "https://hooks.invalid", event_types: ["signing_key.rotated"] };
    onTestFinished(async () => void (await owner`DELETE FROM webhook_endpoints`));
    succeeded(await restClient(server)("POST", paths.webhookEndpoints, endpoint));
    expect(await found("webhook_secrets")).toEqual(["ok the secrets of 1 webhook endpoints can be unwrapped"]);
    expect(await found("webhook_secrets", { KEYHOLD_ROOT_SECRET: OTHER })).toEqual([
      "error webhook secret of w cannot be unwrapped",
    ]);
    const needed = { KEYHOLD_ROOT_SECRET: OTHER, KEYHOLD_ROOT_SECRETS_RETIRED: ROOT_SECRET };
    expect((await found("root_secret_use", needed))[1]).toMatch(/ signing keys, 1 webhook secrets$/);
  });

  test("a signing key with another algorithm than the configured one", async () => {
    const algorithms = async () =>
      (await found("signing_keys", { KEYHOLD_SIGNING_ALGORITHM: "ES256" })).filter((text) =>
        text.includes("KEYHOLD_SIGNING_ALGORITHM"),
      );
    expect(await algorithms()).toEqual([
      expect.stringMatching(/^warning signing key \S+ uses EdDSA, but KEYHOLD_SIGNING_ALGORITHM is ES256$/),
    ]);
    await rotateUnder(owner, { algorithm: "ES256" });
    expect(await algorithms()).toEqual([]);
    expect((await found("signing_keys")).filter((text) => text.includes("KEYHOLD_SIGNING_ALGORITHM"))).toEqual([]);
    await rotateUnder(owner, { algorithm: "EdDSA" });
    const [finding] = (await examineAs({ KEYHOLD_SIGNING_ALGORITHM: "ES256" })).filter(({ message }) =>
      message.includes("KEYHOLD_SIGNING_ALGORITHM"),
    );
    expect(finding?.remedy).toBe("rotate it: keyhold signing-keys rotate --algorithm ES256");
  });
});

describe("with the embedded database", () => {
  test("passes with and without a running server; a superuser is a warning", async () => {
    const dataDir = await usedDataDir();
    await writeFile(join(dataDir, "root-secret"), `${ROOT_SECRET}\n`, { mode: 0o600 });
    const embedded = await start(dataDir);
    await prepareOwned(embedded);
    const more = { KEYHOLD_DATABASE_URL: "", KEYHOLD_ROOT_SECRET: "", KEYHOLD_DATA_DIR: dataDir };
    const findings = await examineAs(more);
    expect(findings.filter(({ check, level }) => level !== "ok" && check !== "data_folder")).toEqual([]);
    expect(await found("rights", { KEYHOLD_DATABASE_URL: embedded.superuserUrl })).toEqual([
      "warning role postgres is a superuser",
    ]);
    await embedded.stop();
    await chmod(dataDir, 0o755);
    const alone = (await examineAs(more)).map(({ level, message }) => `${level} ${message}`);
    expect(alone).toContain(`warning other users can read or write ${dataDir}`);
    expect(alone).toContain("ok committed data survives a crash");
  });

  test("creates nothing before the first start", async () => {
    const dataDir = join(dir, "none");
    const more = { KEYHOLD_DATABASE_URL: "", KEYHOLD_ROOT_SECRET: "", KEYHOLD_DATA_DIR: dataDir };
    const findings = await examineAs(more);
    expect(findings.filter(({ level }) => level !== "ok")).toEqual([]);
    await mkdir(dataDir);
  });
});

describe("the command", () => {
  test("names every invalid variable and exits 1", async () => {
    const wrong = { ...environment(), KEYHOLD_PORT: "x", KEYHOLD_WORKERS: "0", KEYHOLD_DATABASE_URL_FILE: "/no" };
    const { code, stdout } = await runKeyhold(["doctor", "--json"], wrong);
    const { findings } = JSON.parse(stdout);
    const names = findings.map(({ message }: NamedFinding) => message.split(":")[0]).sort();
    expect([code, names]).toEqual([1, ["KEYHOLD_DATABASE_URL_FILE", "KEYHOLD_PORT", "KEYHOLD_WORKERS"]]);
  });

  test("prints findings with remedies and exits 1 on an error", async () => {
    const { code, stdout } = await runKeyhold(["doctor"], environment());
    expect(code).toBe(1);
    expect(stdout).toMatch(/^ok {7}database {10}the database is reachable$/m);
    expect(stdout).toMatch(/^ERROR {4}durability {8}fsync is off.*\n +-> set fsync = on in PostgreSQL$/m);
  });
});
