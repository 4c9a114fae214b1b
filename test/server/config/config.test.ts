import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, inject, test, vi } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import { toClientConfig } from "../../../src/server/config/client-config.ts";
import { type Config, findConfigErrors, toConfig, withFiles } from "../../../src/server/config/config.ts";
import type { Environment } from "../../../src/server/config/values.ts";
import { loadRootSecrets } from "../../../src/server/root-secrets/file.ts";
import { table } from "../../support/conformance.ts";

const ROOT = "4f0c1b2a93d8e7f65a4b3c2d1e0f9a8b";
const OTHER_ROOT = "b8a9f0e1d2c3b4a56f7e8d39a2b1c0f4";
const PASSWORD = "p4ssw0rd-of-the-database";
const DATABASE = { KEYHOLD_DATABASE_URL: `postgres://keyhold:${PASSWORD}@db:5432/keyhold`, KEYHOLD_ROOT_SECRET: ROOT };
const CLIENT_SECRET = "s3cret-of-the-console";
const OIDC = { KEYHOLD_OIDC_ISSUER: "https://id.example", KEYHOLD_OIDC_AUDIENCE: "keyhold" };

/** Networks that contain every address. */
const EVERYWHERE = ["0.0.0.0/1,128.0.0.0/1", "10.0.0.1,128.0.0.0/1, 64.0.0.0/2,0.0.0.0/2", "8000::/1,10.0.0.0/8,::/1"];

/** With an endpoint. */
const TRACING: readonly (readonly [Environment, Config["tracing"]])[] = [
  [{}, { parentBased: true, ratio: 1 }],
  [{ OTEL_TRACES_EXPORTER: "none" }, null],
  [{ OTEL_SDK_DISABLED: "TRUE" }, null],
  [
    { OTEL_SDK_DISABLED: "false", OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" },
    { parentBased: true, ratio: 1 },
  ],
  [
    { OTEL_TRACES_SAMPLER: "always_on", OTEL_TRACES_SAMPLER_ARG: "0" },
    { parentBased: false, ratio: 1 },
  ],
  [{ OTEL_TRACES_SAMPLER: "always_off" }, { parentBased: false, ratio: 0 }],
  [{ OTEL_TRACES_SAMPLER: "parentbased_always_off" }, { parentBased: true, ratio: 0 }],
  ...["0", "0.25", "1"].map((ratio) => {
    const sampler = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: ratio };
    return [sampler, { parentBased: false, ratio: Number(ratio) }] as const;
  }),
];

/** The configuration of an empty environment. */
const DEFAULTS: Config = {
  host: "127.0.0.1",
  port: 4420,
  tls: null,
  databaseUrl: null,
  databasePoolSize: 10,
  databaseListenUrl: null,
  databaseMigrateUrl: null,
  leaseTtl: 3_000,
  staleGrace: 0,
  cacheBytes: 536_870_912,
  dataDir: "./data",
  rootSecrets: null,
  rootSecretFile: null,
  secretPrefix: toConfig({}).secretPrefix,
  issuer: "keyhold",
  lifetimes: { maxKeyTtl: null, defaultKeyTtl: null },
  tokenLimits: { maxTtl: 2_592_000_000, allowedClaims: new Set() },
  expiryWarnings: [2_592_000_000, 604_800_000, 86_400_000],
  signingAlgorithm: null,
  auth: [],
  oidc: null,
  corsOrigins: [],
  hasConsole: true,
  consoleOidc: null,
  consoleOrigin: null,
  keyPages: { isOn: true, frameAncestors: [], name: "", logo: null, color: "" },
  allowedHosts: [],
  trustedProxies: [],
  usage: { retention: 7_776_000_000 },
  lastUsedAddress: "off",
  webhooks: { allowedCidrs: [], proxy: null },
  gateways: {
    protocols: [],
    callers: ["token"],
    networks: [],
    clientCaFile: null,
    address: null,
    credentials: [{ kind: "bearer" }, { kind: "header", name: "x-api-key" }],
    metadata: [],
  },
  publicRate: 100,
  failureRate: 100,
  verificationFailureRate: 100,
  callerVerificationFailureRate: 1000,
  changeRate: 100,
  importRate: 5000,
  workers: 1,
  fastPath: true,
  requestBufferBytes: null,
  logLevel: "info",
  logVerifications: "all",
  metrics: { host: "127.0.0.1", port: 4421 },
  tracing: null,
};

const bytes = (text: string) => Buffer.from(text);

const ON_DATABASE: Partial<Config> = {
  databaseUrl: DATABASE.KEYHOLD_DATABASE_URL,
  rootSecrets: { current: bytes(ROOT), retired: [] },
};

const CONSOLE_OIDC = { KEYHOLD_AUTH: "oidc", ...OIDC, KEYHOLD_CONSOLE_OIDC_CLIENT_ID: "c" };
const ON_OIDC: Partial<Config> = {
  auth: ["oidc"],
  oidc: { issuer: "https://id.example", audience: "keyhold", scopeClaim: "scope" },
};

const GOOD: readonly (readonly [Environment, Partial<Config>])[] = [
  [{}, {}],
  [{ KEYHOLD_PORT: "", KEYHOLD_AUTH: "  ", KEYHOLD_DATABASE_URL: "" }, {}],
  [{ PORT: "1", HOST: "0.0.0.0", DATABASE_URL: "x" }, {}],
  [
    { KEYHOLD_PORT: " 80 ", KEYHOLD_ISSUER: "\tme\n" },
    { port: 80, issuer: "me", metrics: { host: "127.0.0.1", port: 81 } },
  ],
  [
    { KEYHOLD_PUBLIC_RATE: "off", KEYHOLD_FAILURE_RATE: "1000000" },
    { publicRate: null, failureRate: 1_000_000 },
  ],
  [{ KEYHOLD_PORT: "0" }, { port: 0, metrics: { host: "127.0.0.1", port: 0 } }],
  [{ KEYHOLD_PORT: "65535" }, { port: 65535, metrics: { host: "127.0.0.1", port: 0 } }],
  [{ KEYHOLD_HOST: "127.9.8.7" }, { host: "127.9.8.7" }],
  [{ KEYHOLD_HOST: "::1" }, { host: "::1" }],
  [{ KEYHOLD_HOST: "localhost" }, { host: "localhost" }],
  [
    { KEYHOLD_HOST: "0.0.0.0", KEYHOLD_AUTH: "none" },
    { host: "0.0.0.0", auth: ["none"], hasConsole: false },
  ],
  [
    { KEYHOLD_HOST: "::", KEYHOLD_AUTH: "admin-token" },
    { host: "::", auth: ["admin-token"] },
  ],
  [
    { KEYHOLD_AUTH: "oidc", ...OIDC },
    { auth: ["oidc"], oidc: { issuer: "https://id.example", audience: "keyhold", scopeClaim: "scope" } },
  ],
  ...["http://localhost:8080/realm", "http://127.0.0.1:1", "http://[::1]:1"].map(
    (issuer) =>
      [
        { KEYHOLD_AUTH: "oidc", ...OIDC, KEYHOLD_OIDC_ISSUER: issuer },
        { auth: ["oidc"], oidc: { issuer, audience: "keyhold", scopeClaim: "scope" } },
      ] as const,
  ),
  [
    {
      KEYHOLD_AUTH: " admin-token, oidc,,oidc ,none",
      ...OIDC,
      KEYHOLD_OIDC_SCOPE_CLAIM: "realm_access.roles",
      KEYHOLD_OIDC_ACTORS_CLAIM: "tenants",
    },
    {
      auth: ["admin-token", "oidc", "none"],
      hasConsole: false,
      oidc: {
        issuer: "https://id.example",
        audience: "keyhold",
        scopeClaim: "realm_access.roles",
        actorsClaim: "tenants",
      },
    },
  ],
  [CONSOLE_OIDC, { ...ON_OIDC, consoleOidc: { clientId: "c", clientSecret: null, scopes: ["openid"] } }],
  [
    {
      ...{ ...CONSOLE_OIDC, KEYHOLD_HOST: "::", KEYHOLD_CONSOLE_URL: "https://keyhold.example/" },
      KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET: CLIENT_SECRET,
      KEYHOLD_CONSOLE_OIDC_SCOPES: "keyhold:admin, openid profile",
    },
    {
      ...{ ...ON_OIDC, host: "::", consoleOrigin: "https://keyhold.example" },
      consoleOidc: {
        ...{ clientId: "c", clientSecret: CLIENT_SECRET },
        scopes: ["openid", "keyhold:admin", "profile"],
      },
    },
  ],
  [
    {
      ...{ KEYHOLD_KEY_PAGES: "off", KEYHOLD_KEY_PAGES_NAME: " Acme ", KEYHOLD_KEY_PAGES_COLOR: "#0A84ff" },
      KEYHOLD_KEY_PAGES_LOGO_FILE: "/etc/logo.SVG",
      KEYHOLD_KEY_PAGES_FRAME_ANCESTORS: "https://app.example, http://localhost:3000",
    },
    {
      keyPages: {
        ...{ isOn: false, name: "Acme", color: "#0a84ff", logo: { file: "/etc/logo.SVG", type: "image/svg+xml" } },
        frameAncestors: ["https://app.example", "http://localhost:3000"],
      },
    },
  ],
  [
    { KEYHOLD_TLS_CERT_FILE: "/a.pem", KEYHOLD_TLS_KEY_FILE: "/b.pem" },
    { tls: { certFile: "/a.pem", keyFile: "/b.pem" } },
  ],
  [DATABASE, ON_DATABASE],
  [
    { ...DATABASE, KEYHOLD_DATABASE_URL: "postgresql://keyhold@%2Frun%2Fpostgresql/keyhold" },
    { ...ON_DATABASE, databaseUrl: "postgresql://keyhold@%2Frun%2Fpostgresql/keyhold" },
  ],
  [{ KEYHOLD_DATABASE_POOL_SIZE: "1000" }, { databasePoolSize: 1000 }],
  [{ KEYHOLD_CACHE_SIZE: "1" }, { cacheBytes: 1_048_576 }],
  [{ KEYHOLD_CACHE_SIZE: "0" }, { cacheBytes: 0 }],
  [
    { ...DATABASE, KEYHOLD_CACHE_SIZE: "64" },
    { ...ON_DATABASE, cacheBytes: 67_108_864 },
  ],
  [{ KEYHOLD_LEASE_TTL: "1m" }, { leaseTtl: 60_000 }],
  [
    { KEYHOLD_MAX_TOKEN_TTL: "1h", KEYHOLD_ALLOWED_CLAIMS: "email, groups,tenant" },
    { tokenLimits: { maxTtl: 3_600_000, allowedClaims: new Set(["email", "groups", "tenant"]) } },
  ],
  [{ KEYHOLD_EXPIRY_WARNINGS: "off" }, { expiryWarnings: [] }],
  [{ KEYHOLD_EXPIRY_WARNINGS: "2w, 1h30m" }, { expiryWarnings: [1_209_600_000, 5_400_000] }],
  [{ KEYHOLD_STALE_GRACE: "10m" }, { staleGrace: 600_000 }],
  [
    { ...DATABASE, KEYHOLD_DATABASE_LISTEN_URL: "postgres://keyhold@direct:5432/keyhold" },
    { ...ON_DATABASE, databaseListenUrl: "postgres://keyhold@direct:5432/keyhold" },
  ],
  [
    { ...DATABASE, KEYHOLD_DATABASE_MIGRATE_URL: "postgres://owner@db:5432/keyhold" },
    { ...ON_DATABASE, databaseMigrateUrl: "postgres://owner@db:5432/keyhold" },
  ],
  [
    { ...DATABASE, KEYHOLD_ROOT_SECRET: "", KEYHOLD_ROOT_SECRET_FILE: "/run/secrets/root" },
    { ...ON_DATABASE, rootSecrets: null, rootSecretFile: "/run/secrets/root" },
  ],
  [{ KEYHOLD_DATA_DIR: "/var/lib/keyhold" }, { dataDir: "/var/lib/keyhold" }],
  [
    { KEYHOLD_ROOT_SECRET: ROOT, KEYHOLD_ROOT_SECRETS_RETIRED: ` ${OTHER_ROOT} , ${ROOT},` },
    { rootSecrets: { current: bytes(ROOT), retired: [bytes(OTHER_ROOT), bytes(ROOT)] } },
  ],
  [
    { KEYHOLD_CORS_ORIGINS: "https://app.example, http://localhost:3000,chrome-extension://abcdef" },
    { corsOrigins: ["https://app.example", "http://localhost:3000", "chrome-extension://abcdef"] },
  ],
  [
    { KEYHOLD_ALLOWED_HOSTS: "keyhold.internal, *.Example.com,my_service,10.0.0.1,[fd00::1]" },
    { allowedHosts: ["keyhold.internal", "*.Example.com", "my_service", "10.0.0.1", "[fd00::1]"] },
  ],
  [
    { KEYHOLD_TRUSTED_PROXIES: "10.0.0.0/8, 192.0.2.7,2001:DB8::/32,::ffff:10.1.0.0/112" },
    { trustedProxies: ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32", "10.1.0.0/16"] },
  ],
  [{ KEYHOLD_USAGE: "on", KEYHOLD_USAGE_RETENTION: "30d" }, { usage: { retention: 2_592_000_000 } }],
  [{ KEYHOLD_LAST_USED_ADDRESS: "truncated" }, { lastUsedAddress: "truncated" }],
  [{ KEYHOLD_USAGE: "off" }, { usage: { retention: null } }],
  ...["http://proxy:3128", `https://user:${PASSWORD}@[fd00::1]:443/`].map(
    (proxy) =>
      [
        { KEYHOLD_WEBHOOK_ALLOW_CIDRS: "10.0.0.0/8, FD00::/8", KEYHOLD_WEBHOOK_PROXY: proxy },
        { webhooks: { allowedCidrs: ["10.0.0.0/8", "fd00::/8"], proxy } },
      ] as const,
  ),
  [{ KEYHOLD_WORKERS: "256" }, { workers: 256 }],
  [{ KEYHOLD_WORKERS: " auto " }, { workers: "auto" }],
  [{ KEYHOLD_FAST_PATH: "off" }, { fastPath: false }],
  [{ KEYHOLD_REQUEST_BUFFER_SIZE: "32" }, { requestBufferBytes: 32 * 2 ** 20 }],
  [{ KEYHOLD_LOG_LEVEL: "silent" }, { logLevel: "silent" }],
  [{ KEYHOLD_LOG_VERIFICATIONS: "sampled" }, { logVerifications: "sampled" }],
  ...TRACING.map(
    ([variables, tracing]) =>
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", ...variables }, { tracing }] as const,
  ),
];

describe("an environment configures", () => {
  test.each(table(GOOD))("%j", (environment, expected) => {
    expect(toConfig(environment)).toEqual({ ...DEFAULTS, ...expected });
  });

  test("a prefix of secrets", () => {
    expect(toConfig({ KEYHOLD_SECRET_PREFIX: "acme2" }).secretPrefix).toBe("acme2");
    expect(DEFAULTS.secretPrefix).toBe("kh");
  });

  test("an equal configuration for an equal environment: only the argument is read", () => {
    vi.stubEnv("KEYHOLD_PORT", "1");
    expect(toConfig({})).toEqual(DEFAULTS);
    vi.unstubAllEnvs();
  });
});

/** Values that are invalid, whatever the others are. */
const INVALID: Readonly<Record<string, readonly string[]>> = {
  KEYHOLD_PORT: ["65536", "-1", "1.5", "0x10", "1e3", "http", "99999999999"],
  KEYHOLD_PUBLIC_RATE: ["0", "1000001", "1.5", "none"],
  KEYHOLD_FAILURE_RATE: ["-1"],
  KEYHOLD_VERIFICATION_FAILURE_RATE: ["0"],
  KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: ["0"],
  KEYHOLD_CHANGE_RATE: ["none"],
  KEYHOLD_IMPORT_RATE: ["1000001"],
  KEYHOLD_EXPIRY_WARNINGS: ["7", "7d,off", "30s", "367d", "7d;1d", `${"1d,".repeat(10)}2d`],
  KEYHOLD_DATABASE_POOL_SIZE: ["0", "1001", "ten"],
  KEYHOLD_CACHE_SIZE: ["-1", "65537", "1.5", "512MB"],
  KEYHOLD_LEASE_TTL: ["0s", "0.5s", "61s", "3", "soon"],
  // Without a database, which would be the embedded one.
  KEYHOLD_DATABASE_LISTEN_URL: ["postgres://keyhold@direct:5432/keyhold"],
  KEYHOLD_DATABASE_MIGRATE_URL: ["postgres://keyhold@direct:5432/keyhold"],
  KEYHOLD_AUTH: ["admin", "None", "admin-token oidc", "admin-token,basic", "oidc"],
  KEYHOLD_OIDC_ACTORS_CLAIM: ["tenants"],
  // Without KEYHOLD_CONSOLE_OIDC_CLIENT_ID, or without oidc.
  KEYHOLD_CONSOLE_OIDC_CLIENT_ID: ["console"],
  KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET: [CLIENT_SECRET],
  KEYHOLD_CONSOLE_OIDC_SCOPES: ["openid"],
  KEYHOLD_CONSOLE_URL: ["http://keyhold.example"],
  KEYHOLD_KEY_PAGES: ["true"],
  KEYHOLD_KEY_PAGES_FRAME_ANCESTORS: ["app.example", "https://app.example/", "*", "https://a.example 'self'"],
  KEYHOLD_KEY_PAGES_LOGO_FILE: ["logo.gif", "logo"],
  KEYHOLD_KEY_PAGES_COLOR: ["blue", "#abc", "#12345g", "#123456;"],
  KEYHOLD_ROOT_SECRET: [ROOT.slice(1), "0123456".repeat(6), `${ROOT},${OTHER_ROOT}`],
  KEYHOLD_ROOT_SECRETS_RETIRED: [ROOT],
  KEYHOLD_SECRET_PREFIX: ["KH", "1kh", "kh_", "k-h", "a2345678901234567"],
  KEYHOLD_CORS_ORIGINS: [
    ...["*", "null", "app.example", "https://app.example/", "https://App.example", "https://app.example:443"],
  ],
  KEYHOLD_ALLOWED_HOSTS: [
    ...["*", "https://a.example", "a.example:443", "a.*.example", "*example.com", ".example", "a b", "fd00::1"],
  ],
  KEYHOLD_TRUSTED_PROXIES: [
    ...["*", "true", "localhost", "10.0.0.1/8", "10.0.0.0/33", "fe80::1%eth0", "0.0.0.0/0", "::/0", "::ffff:0:0/96"],
    ...EVERYWHERE,
  ],
  KEYHOLD_LAST_USED_ADDRESS: ["on", "/24"],
  KEYHOLD_USAGE: ["yes", "1"],
  KEYHOLD_USAGE_RETENTION: ["off", "1h", "401d", "90"],
  KEYHOLD_WEBHOOK_ALLOW_CIDRS: ["*", "localhost", "10.0.0.1/8", ...EVERYWHERE],
  KEYHOLD_WEBHOOK_PROXY: [
    ...["proxy:3128", "proxy", `socks5://user:${PASSWORD}@proxy:1080`, `http://user:${PASSWORD}@proxy:3128/path`],
    ...[`http://user:${PASSWORD}@proxy:3128?a`, `http://user:${PASSWORD}@proxy:99999`],
  ],
  KEYHOLD_WORKERS: ["0", "257", "-1", "2.5", "all", "Auto"],
  KEYHOLD_LOG_LEVEL: ["verbose"],
  KEYHOLD_LOG_VERIFICATIONS: ["none"],
};

const TRACED = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", OTEL_TRACES_SAMPLER: "traceidratio" };

const BAD: readonly (readonly [variable: string, environment: Environment])[] = [
  ...Object.entries(INVALID).flatMap(([name, values]) => values.map((value) => [name, { [name]: value }] as const)),
  // Root secrets beside a file of root secrets.
  ...["KEYHOLD_ROOT_SECRET", "KEYHOLD_ROOT_SECRETS_RETIRED"].map(
    (name) => ["KEYHOLD_ROOT_SECRET_FILE", { [name]: ROOT, KEYHOLD_ROOT_SECRET_FILE: "/run/secrets/root" }] as const,
  ),
  ["KEYHOLD_DATABASE_LISTEN_URL", { ...DATABASE, KEYHOLD_DATABASE_LISTEN_URL: `mysql://keyhold:${PASSWORD}@db` }],
  // Addresses beyond loopback, without saying who may call.
  ...["0.0.0.0", "::", "10.0.0.1", "keyhold.internal", "127.0.0.1.example", "1270.0.0.1", "::ffff:10.0.0.1"].map(
    (host) => ["KEYHOLD_AUTH", { KEYHOLD_HOST: host }] as const,
  ),
  ["KEYHOLD_AUTH", { KEYHOLD_HOST: "0.0.0.0", KEYHOLD_AUTH: "," }],
  // An issuer without oidc, and oidc without all of its variables.
  ["KEYHOLD_AUTH", OIDC],
  ["KEYHOLD_AUTH", { KEYHOLD_AUTH: "admin-token", ...OIDC }],
  ["KEYHOLD_OIDC_ISSUER", { KEYHOLD_AUTH: "oidc", KEYHOLD_OIDC_AUDIENCE: "keyhold" }],
  ["KEYHOLD_OIDC_AUDIENCE", { KEYHOLD_AUTH: "oidc", KEYHOLD_OIDC_ISSUER: "https://id.example" }],
  ...[
    ...["id.example", "ftp://id.example", "https://id.example?a=b", "https://id.example/#x"],
    ...["https://", "http://id.example"],
  ].map((url) => ["KEYHOLD_OIDC_ISSUER", { KEYHOLD_AUTH: "oidc", ...OIDC, KEYHOLD_OIDC_ISSUER: url }] as const),
  ["KEYHOLD_CONSOLE_URL", { ...CONSOLE_OIDC, KEYHOLD_HOST: "0.0.0.0" }],
  ...[
    ...[
      "keyhold.example",
      "http://keyhold.example",
      "https://keyhold.example/x",
      "https://a@keyhold.example",
      "https:",
    ],
    ...["https://keyhold.example?a", "ftp://keyhold.example", "https://Keyhold.example"],
  ].map((url) => ["KEYHOLD_CONSOLE_URL", { ...CONSOLE_OIDC, KEYHOLD_CONSOLE_URL: url }] as const),
  ["KEYHOLD_CONSOLE_OIDC_SCOPES", { ...CONSOLE_OIDC, KEYHOLD_CONSOLE_OIDC_SCOPES: 'open"id' }],
  ["KEYHOLD_TLS_KEY_FILE", { KEYHOLD_TLS_CERT_FILE: "/a.pem" }],
  ["KEYHOLD_TLS_CERT_FILE", { KEYHOLD_TLS_KEY_FILE: "/b.pem" }],
  ["KEYHOLD_ROOT_SECRET", { ...DATABASE, KEYHOLD_ROOT_SECRET: undefined }],
  ...[`mysql://u:${PASSWORD}@db/keyhold`, `u:${PASSWORD}@db/keyhold`, `postgres://u:${PASSWORD}@db:port/keyhold`].map(
    (url) => ["KEYHOLD_DATABASE_URL", { ...DATABASE, KEYHOLD_DATABASE_URL: url }] as const,
  ),
  [
    "KEYHOLD_ROOT_SECRETS_RETIRED",
    { KEYHOLD_ROOT_SECRET: ROOT, KEYHOLD_ROOT_SECRETS_RETIRED: `${ROOT},${OTHER_ROOT.slice(1)}` },
  ],
  ...EVERYWHERE.map((all) => {
    const gateways = { KEYHOLD_GATEWAYS: "ext-authz", KEYHOLD_GATEWAY_CALLERS: "network" };
    return ["KEYHOLD_GATEWAY_NETWORKS", { ...gateways, KEYHOLD_GATEWAY_NETWORKS: all }] as const;
  }),
  ["KEYHOLD_STALE_GRACE", { KEYHOLD_STALE_GRACE: "1s", KEYHOLD_CACHE_SIZE: "0" }],
  ...[
    ["OTEL_TRACES_EXPORTER", "zipkin"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"],
    ["OTEL_TRACES_SAMPLER", "parentbased"],
    ...["-0.1", "1.1", "all"].map((ratio) => ["OTEL_TRACES_SAMPLER_ARG", ratio] as const),
  ].map(([variable = "", value]) => [variable, { ...TRACED, [variable]: value }] as const),
];

describe("an environment is rejected with the name of the variable for", () => {
  test.each(table(BAD))("%s: %j", (variable, environment) => {
    const error = refusalOf(environment);
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT", violations: [{ field: variable }] });
    expect(error.message).toMatch(new RegExp(`^${variable}: `));
  });

  test("no message contains a secret", () => {
    const secrets = [ROOT, OTHER_ROOT, ROOT.slice(1), OTHER_ROOT.slice(1), PASSWORD, CLIENT_SECRET];
    const messages = table(BAD).map(([, environment]) => refusalOf(environment).message);
    expect(messages.filter((message) => secrets.some((secret) => message.includes(secret)))).toEqual([]);
  });

  test("messages explain how to choose authentication and how to generate a root secret", () => {
    expect(refusalOf({ KEYHOLD_HOST: "0.0.0.0" }).message).toMatch(/0\.0\.0\.0: use admin-token, oidc, or none/);
    expect(refusalOf({ ...DATABASE, KEYHOLD_ROOT_SECRET: "" }).message).toContain("openssl rand -base64 32");
  });
});

describe("files", () => {
  const VARIABLES = table(["KEYHOLD_DATABASE_URL", "KEYHOLD_DATABASE_LISTEN_URL", "KEYHOLD_DATABASE_MIGRATE_URL"]);

  test.each(VARIABLES)("%s may be read from a file", async (name) => {
    const dir = await mkdtemp(join(inject("testDir"), "config-"));
    const file = join(dir, "url");
    await writeFile(file, `${DATABASE.KEYHOLD_DATABASE_URL}\n`);
    const others: Environment = { ...DATABASE, [name]: "" };
    const [byFile, byName] = [
      { ...others, [`${name}_FILE`]: file },
      { ...others, [name]: DATABASE.KEYHOLD_DATABASE_URL },
    ];
    expect(toConfig(withFiles(byFile))).toEqual(toConfig(byName));
    expect(findConfigErrors(byFile)).toEqual([]);
    expect(findConfigErrors({ ...byFile, ...byName })).toEqual([`${name}_FILE: must not be set together with ${name}`]);
    expect(findConfigErrors({ ...byFile, [`${name}_FILE`]: `${dir}/no` })).toContain(
      `${name}_FILE: ${dir}/no cannot be read (ENOENT)`,
    );
  });

  test("the secret of the console's client may be in a file", async () => {
    const dir = await mkdtemp(join(inject("testDir"), "config-"));
    await writeFile(join(dir, "secret"), `${CLIENT_SECRET}\n`);
    const byFile = { ...CONSOLE_OIDC, KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET_FILE: join(dir, "secret") };
    expect(toConfig(withFiles(byFile)).consoleOidc?.clientSecret).toBe(CLIENT_SECRET);
  });

  test("a missing file of root secrets is rejected", async () => {
    const config = toConfig({ ...DATABASE, KEYHOLD_ROOT_SECRET: "", KEYHOLD_ROOT_SECRET_FILE: "/no/such" });
    await expect(loadRootSecrets(config)).rejects.toThrow("KEYHOLD_ROOT_SECRET_FILE: /no/such cannot be read (ENOENT)");
  });
});

test("all errors are reported together", () => {
  const wrong = { ...DATABASE, KEYHOLD_PORT: "x", KEYHOLD_WORKERS: "0", KEYHOLD_SECRET_PREFIX: "K" };
  const fields = findConfigErrors(wrong).map((message) => message.split(":")[0]);
  expect(fields.sort()).toEqual(["KEYHOLD_PORT", "KEYHOLD_SECRET_PREFIX", "KEYHOLD_WORKERS"]);
});

describe("the commands that call a server", () => {
  test("use the context of the home folder by default", () => {
    const none = { url: null, token: null, tokenFile: null, caFile: null, contextFile: null };
    expect(toClientConfig({})).toEqual(none);
    expect(toClientConfig({ HOME: "/home/a" }).contextFile).toBe("/home/a/.config/keyhold/context.json");
  });

  test("read the server and the token from the environment", () => {
    const environment = { KEYHOLD_URL: " https://keys.example/base/ ", KEYHOLD_TOKEN: "t" };
    expect(toClientConfig(environment)).toEqual({
      url: "https://keys.example/base",
      token: "t",
      tokenFile: null,
      caFile: null,
      contextFile: null,
    });
  });

  const refused: readonly (readonly [string, Environment])[] = [
    ...["keys.example", "ftp://keys.example", "https://user@keys.example", "https://keys.example/?a", "https://"].map(
      (url) => ["KEYHOLD_URL", { KEYHOLD_URL: url }] as const,
    ),
    ["KEYHOLD_TOKEN_FILE", { KEYHOLD_TOKEN: PASSWORD, KEYHOLD_TOKEN_FILE: "token" }],
  ];
  test.each(table(refused))("%s is refused: %o", (variable, environment) => {
    const error = refusalOf(environment, toClientConfig);
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT", violations: [{ field: variable }] });
    expect(error.message).not.toContain(PASSWORD);
  });
});

function refusalOf(environment: Environment, read: (environment: Environment) => unknown = toConfig): KeyholdError {
  try {
    read(environment);
  } catch (error) {
    if (error instanceof KeyholdError) return error;
    throw error;
  }
  throw new Error(`accepted: ${JSON.stringify(environment)}`);
}
