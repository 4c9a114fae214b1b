import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, inject, test, vi } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import {
  type Config,
  type Environment,
  findConfigErrors,
  toClientConfig,
  toConfig,
  withFiles,
} from "../../../src/server/config/config.ts";
import { loadRootSecrets } from "../../../src/server/root-secrets/file.ts";
import { table } from "../../support/conformance.ts";

const ROOT = "4f0c1b2a93d8e7f65a4b3c2d1e0f9a8b";
const OTHER_ROOT = "b8a9f0e1d2c3b4a56f7e8d39a2b1c0f4";
const PASSWORD = "p4ssw0rd-of-the-database";
const DATABASE = { KEYHOLD_DATABASE_URL: `postgres://keyhold:${PASSWORD}@db:5432/keyhold`, KEYHOLD_ROOT_SECRET: ROOT };
const OIDC = { KEYHOLD_OIDC_ISSUER: "https://id.example", KEYHOLD_OIDC_AUDIENCE: "keyhold" };

/** With an endpoint. */
const TRACING: readonly (readonly [string, Environment, Config["tracing"]])[] = [
  ["the default sampler", {}, { parentBased: true, ratio: 1 }],
  ["no exporter", { OTEL_TRACES_EXPORTER: "none" }, null],
  ["off", { OTEL_SDK_DISABLED: "TRUE" }, null],
  ["on", { OTEL_SDK_DISABLED: "false", OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" }, { parentBased: true, ratio: 1 }],
  ["always_on", { OTEL_TRACES_SAMPLER: "always_on", OTEL_TRACES_SAMPLER_ARG: "0" }, { parentBased: false, ratio: 1 }],
  ["always_off", { OTEL_TRACES_SAMPLER: "always_off" }, { parentBased: false, ratio: 0 }],
  ["parentbased_always_off", { OTEL_TRACES_SAMPLER: "parentbased_always_off" }, { parentBased: true, ratio: 0 }],
  ...["0", "0.25", "1"].map((ratio) => {
    const sampler = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: ratio };
    return [`a ratio of ${ratio}`, sampler, { parentBased: false, ratio: Number(ratio) }] as const;
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
  signingAlgorithm: null,
  auth: [],
  oidc: null,
  corsOrigins: [],
  allowedHosts: [],
  trustedProxies: [],
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
  workers: 1,
  fastPath: true,
  requestBufferBytes: null,
  logLevel: "info",
  metrics: { host: "127.0.0.1", port: 4421 },
  tracing: null,
};

const bytes = (text: string) => Buffer.from(text);

const ON_DATABASE: Partial<Config> = {
  databaseUrl: DATABASE.KEYHOLD_DATABASE_URL,
  rootSecrets: { current: bytes(ROOT), retired: [] },
};

const GOOD: readonly (readonly [string, Environment, Partial<Config>])[] = [
  ["nothing", {}, {}],
  ["variables that are empty or blank", { KEYHOLD_PORT: "", KEYHOLD_AUTH: "  ", KEYHOLD_DATABASE_URL: "" }, {}],
  ["variables of other programs", { PORT: "1", HOST: "0.0.0.0", DATABASE_URL: "x" }, {}],
  [
    "space around values",
    { KEYHOLD_PORT: " 80 ", KEYHOLD_ISSUER: "\tme\n" },
    { port: 80, issuer: "me", metrics: { host: "127.0.0.1", port: 81 } },
  ],
  [
    "rates, or off",
    { KEYHOLD_PUBLIC_RATE: "off", KEYHOLD_FAILURE_RATE: "1000000" },
    { publicRate: null, failureRate: 1_000_000 },
  ],
  ["any free port", { KEYHOLD_PORT: "0" }, { port: 0, metrics: { host: "127.0.0.1", port: 0 } }],
  ["the highest port", { KEYHOLD_PORT: "65535" }, { port: 65535, metrics: { host: "127.0.0.1", port: 0 } }],
  ["another loopback address", { KEYHOLD_HOST: "127.9.8.7" }, { host: "127.9.8.7" }],
  ["the loopback address of IPv6", { KEYHOLD_HOST: "::1" }, { host: "::1" }],
  ["localhost", { KEYHOLD_HOST: "localhost" }, { host: "localhost" }],
  [
    "every address, without authentication",
    { KEYHOLD_HOST: "0.0.0.0", KEYHOLD_AUTH: "none" },
    { host: "0.0.0.0", auth: ["none"] },
  ],
  [
    "every address, with admin tokens",
    { KEYHOLD_HOST: "::", KEYHOLD_AUTH: "admin-token" },
    { host: "::", auth: ["admin-token"] },
  ],
  [
    "OIDC",
    { KEYHOLD_AUTH: "oidc", ...OIDC },
    { auth: ["oidc"], oidc: { issuer: "https://id.example", audience: "keyhold", scopeClaim: "scope" } },
  ],
  ...["http://localhost:8080/realm", "http://127.0.0.1:1", "http://[::1]:1"].map(
    (issuer) =>
      [
        `the issuer ${issuer} on this machine`,
        { KEYHOLD_AUTH: "oidc", ...OIDC, KEYHOLD_OIDC_ISSUER: issuer },
        { auth: ["oidc"], oidc: { issuer, audience: "keyhold", scopeClaim: "scope" } },
      ] as const,
  ),
  [
    "OIDC beside others, each once",
    {
      KEYHOLD_AUTH: " admin-token, oidc,,oidc ,none",
      ...OIDC,
      KEYHOLD_OIDC_SCOPE_CLAIM: "realm_access.roles",
      KEYHOLD_OIDC_ACTORS_CLAIM: "tenants",
    },
    {
      auth: ["admin-token", "oidc", "none"],
      oidc: {
        issuer: "https://id.example",
        audience: "keyhold",
        scopeClaim: "realm_access.roles",
        actorsClaim: "tenants",
      },
    },
  ],
  [
    "TLS",
    { KEYHOLD_TLS_CERT_FILE: "/a.pem", KEYHOLD_TLS_KEY_FILE: "/b.pem" },
    { tls: { certFile: "/a.pem", keyFile: "/b.pem" } },
  ],
  ["a database", DATABASE, ON_DATABASE],
  [
    "a database with the other protocol name, on a socket",
    { ...DATABASE, KEYHOLD_DATABASE_URL: "postgresql://keyhold@%2Frun%2Fpostgresql/keyhold" },
    { ...ON_DATABASE, databaseUrl: "postgresql://keyhold@%2Frun%2Fpostgresql/keyhold" },
  ],
  ["a pool", { KEYHOLD_DATABASE_POOL_SIZE: "1000" }, { databasePoolSize: 1000 }],
  ["a cache", { KEYHOLD_CACHE_SIZE: "1" }, { cacheBytes: 1_048_576 }],
  ["no cache", { KEYHOLD_CACHE_SIZE: "0" }, { cacheBytes: 0 }],
  ["a cache and a database", { ...DATABASE, KEYHOLD_CACHE_SIZE: "64" }, { ...ON_DATABASE, cacheBytes: 67_108_864 }],
  ["a lease", { KEYHOLD_LEASE_TTL: "1m" }, { leaseTtl: 60_000 }],
  [
    "limits of derived tokens",
    { KEYHOLD_MAX_TOKEN_TTL: "1h", KEYHOLD_ALLOWED_CLAIMS: "email, groups,tenant" },
    { tokenLimits: { maxTtl: 3_600_000, allowedClaims: new Set(["email", "groups", "tenant"]) } },
  ],
  ["a grace period for stale verdicts", { KEYHOLD_STALE_GRACE: "10m" }, { staleGrace: 600_000 }],
  [
    "a separate connection for notifications",
    { ...DATABASE, KEYHOLD_DATABASE_LISTEN_URL: "postgres://keyhold@direct:5432/keyhold" },
    { ...ON_DATABASE, databaseListenUrl: "postgres://keyhold@direct:5432/keyhold" },
  ],
  [
    "the owner of the schema, for migrations",
    { ...DATABASE, KEYHOLD_DATABASE_MIGRATE_URL: "postgres://owner@db:5432/keyhold" },
    { ...ON_DATABASE, databaseMigrateUrl: "postgres://owner@db:5432/keyhold" },
  ],
  [
    "root secrets in a file",
    { ...DATABASE, KEYHOLD_ROOT_SECRET: "", KEYHOLD_ROOT_SECRET_FILE: "/run/secrets/root" },
    { ...ON_DATABASE, rootSecrets: null, rootSecretFile: "/run/secrets/root" },
  ],
  ["a data folder", { KEYHOLD_DATA_DIR: "/var/lib/keyhold" }, { dataDir: "/var/lib/keyhold" }],
  [
    "retired root secrets",
    { KEYHOLD_ROOT_SECRET: ROOT, KEYHOLD_ROOT_SECRETS_RETIRED: ` ${OTHER_ROOT} , ${ROOT},` },
    { rootSecrets: { current: bytes(ROOT), retired: [bytes(OTHER_ROOT), bytes(ROOT)] } },
  ],
  [
    "origins",
    { KEYHOLD_CORS_ORIGINS: "https://app.example, http://localhost:3000,chrome-extension://abcdef" },
    { corsOrigins: ["https://app.example", "http://localhost:3000", "chrome-extension://abcdef"] },
  ],
  [
    "host names",
    { KEYHOLD_ALLOWED_HOSTS: "keyhold.internal, *.Example.com,my_service,10.0.0.1,[fd00::1]" },
    { allowedHosts: ["keyhold.internal", "*.Example.com", "my_service", "10.0.0.1", "[fd00::1]"] },
  ],
  [
    "trusted proxies",
    { KEYHOLD_TRUSTED_PROXIES: "10.0.0.0/8, 192.0.2.7,2001:DB8::/32,::ffff:10.1.0.0/112" },
    { trustedProxies: ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32", "10.1.0.0/16"] },
  ],
  ["many processes", { KEYHOLD_WORKERS: "256" }, { workers: 256 }],
  ["a process for each core", { KEYHOLD_WORKERS: " auto " }, { workers: "auto" }],
  ["no fast path", { KEYHOLD_FAST_PATH: "off" }, { fastPath: false }],
  ["a request buffer", { KEYHOLD_REQUEST_BUFFER_SIZE: "32" }, { requestBufferBytes: 32 * 2 ** 20 }],
  ["silence", { KEYHOLD_LOG_LEVEL: "silent" }, { logLevel: "silent" }],
  ...TRACING.map(
    ([name, variables, tracing]) =>
      [
        `tracing: ${name}`,
        { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", ...variables },
        { tracing },
      ] as const,
  ),
];

describe("an environment configures", () => {
  test.each(table(GOOD))("%s", (_, environment, expected) => {
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

const BAD: readonly (readonly [string, string, Environment])[] = [
  ...["65536", "-1", "1.5", "0x10", "1e3", "http", "99999999999"].map(
    (port) => [`port ${port}`, "KEYHOLD_PORT", { KEYHOLD_PORT: port }] as const,
  ),
  ...["0", "1000001", "1.5", "none"].map(
    (rate) => [`a rate of ${rate}`, "KEYHOLD_PUBLIC_RATE", { KEYHOLD_PUBLIC_RATE: rate }] as const,
  ),
  ["a rate of failures of -1", "KEYHOLD_FAILURE_RATE", { KEYHOLD_FAILURE_RATE: "-1" }],
  ...["0", "1001", "ten"].map(
    (size) => [`a pool of ${size}`, "KEYHOLD_DATABASE_POOL_SIZE", { KEYHOLD_DATABASE_POOL_SIZE: size }] as const,
  ),
  ...["-1", "65537", "1.5", "512MB"].map(
    (size) => [`a cache of ${size}`, "KEYHOLD_CACHE_SIZE", { KEYHOLD_CACHE_SIZE: size }] as const,
  ),
  ...["0s", "0.5s", "61s", "3", "soon"].map(
    (ttl) => [`a lease of ${ttl}`, "KEYHOLD_LEASE_TTL", { KEYHOLD_LEASE_TTL: ttl }] as const,
  ),
  [
    "a connection for notifications of the embedded database",
    "KEYHOLD_DATABASE_LISTEN_URL",
    { KEYHOLD_DATABASE_LISTEN_URL: "postgres://keyhold@direct:5432/keyhold" },
  ],
  [
    "an owner of the embedded database",
    "KEYHOLD_DATABASE_MIGRATE_URL",
    { KEYHOLD_DATABASE_MIGRATE_URL: "postgres://keyhold@direct:5432/keyhold" },
  ],
  [
    "a root secret and a file of root secrets",
    "KEYHOLD_ROOT_SECRET_FILE",
    { KEYHOLD_ROOT_SECRET: ROOT, KEYHOLD_ROOT_SECRET_FILE: "/run/secrets/root" },
  ],
  [
    "retired root secrets and a file of root secrets",
    "KEYHOLD_ROOT_SECRET_FILE",
    { KEYHOLD_ROOT_SECRETS_RETIRED: ROOT, KEYHOLD_ROOT_SECRET_FILE: "/run/secrets/root" },
  ],
  [
    "an invalid address for notifications",
    "KEYHOLD_DATABASE_LISTEN_URL",
    { ...DATABASE, KEYHOLD_DATABASE_LISTEN_URL: `mysql://keyhold:${PASSWORD}@db` },
  ],
  ...["0.0.0.0", "::", "10.0.0.1", "keyhold.internal", "127.0.0.1.example", "1270.0.0.1", "::ffff:10.0.0.1"].map(
    (host) => [`${host} without saying who may call`, "KEYHOLD_AUTH", { KEYHOLD_HOST: host }] as const,
  ),
  [
    "an address beyond loopback, with an empty list of methods",
    "KEYHOLD_AUTH",
    { KEYHOLD_HOST: "0.0.0.0", KEYHOLD_AUTH: "," },
  ],
  ...["admin", "None", "admin-token oidc", "admin-token,basic"].map(
    (auth) => [`authentication by ${auth}`, "KEYHOLD_AUTH", { KEYHOLD_AUTH: auth }] as const,
  ),
  ["oidc without issuer", "KEYHOLD_AUTH", { KEYHOLD_AUTH: "oidc" }],
  ["an issuer without oidc", "KEYHOLD_AUTH", OIDC],
  ["a claim with actors without an issuer", "KEYHOLD_OIDC_ACTORS_CLAIM", { KEYHOLD_OIDC_ACTORS_CLAIM: "tenants" }],
  ["an issuer without oidc, with admin tokens", "KEYHOLD_AUTH", { KEYHOLD_AUTH: "admin-token", ...OIDC }],
  ["an audience alone", "KEYHOLD_OIDC_ISSUER", { KEYHOLD_AUTH: "oidc", KEYHOLD_OIDC_AUDIENCE: "keyhold" }],
  ["an issuer alone", "KEYHOLD_OIDC_AUDIENCE", { KEYHOLD_AUTH: "oidc", KEYHOLD_OIDC_ISSUER: "https://id.example" }],
  ...[
    "id.example",
    "ftp://id.example",
    "https://id.example?a=b",
    "https://id.example/#x",
    "https://",
    "http://id.example",
  ].map(
    (issuer) =>
      [
        `the issuer ${issuer}`,
        "KEYHOLD_OIDC_ISSUER",
        { KEYHOLD_AUTH: "oidc", ...OIDC, KEYHOLD_OIDC_ISSUER: issuer },
      ] as const,
  ),
  ["a certificate without its key", "KEYHOLD_TLS_KEY_FILE", { KEYHOLD_TLS_CERT_FILE: "/a.pem" }],
  ["a key without its certificate", "KEYHOLD_TLS_CERT_FILE", { KEYHOLD_TLS_KEY_FILE: "/b.pem" }],
  ["a database without a root secret", "KEYHOLD_ROOT_SECRET", { ...DATABASE, KEYHOLD_ROOT_SECRET: undefined }],
  ...[`mysql://u:${PASSWORD}@db/keyhold`, `u:${PASSWORD}@db/keyhold`, `postgres://u:${PASSWORD}@db:port/keyhold`].map(
    (url) => [`the database ${url}`, "KEYHOLD_DATABASE_URL", { ...DATABASE, KEYHOLD_DATABASE_URL: url }] as const,
  ),
  ["a root secret that is too short", "KEYHOLD_ROOT_SECRET", { KEYHOLD_ROOT_SECRET: ROOT.slice(1) }],
  ["a root secret that is not random", "KEYHOLD_ROOT_SECRET", { KEYHOLD_ROOT_SECRET: "0123456".repeat(6) }],
  ["a root secret with a comma", "KEYHOLD_ROOT_SECRET", { KEYHOLD_ROOT_SECRET: `${ROOT},${OTHER_ROOT}` }],
  [
    "a retired root secret that is too short",
    "KEYHOLD_ROOT_SECRETS_RETIRED",
    { KEYHOLD_ROOT_SECRET: ROOT, KEYHOLD_ROOT_SECRETS_RETIRED: `${ROOT},${OTHER_ROOT.slice(1)}` },
  ],
  ["retired root secrets alone", "KEYHOLD_ROOT_SECRETS_RETIRED", { KEYHOLD_ROOT_SECRETS_RETIRED: ROOT }],
  ...["KH", "1kh", "kh_", "k-h", "a2345678901234567"].map(
    (prefix) => [`the prefix ${prefix}`, "KEYHOLD_SECRET_PREFIX", { KEYHOLD_SECRET_PREFIX: prefix }] as const,
  ),
  ...["*", "null", "app.example", "https://app.example/", "https://App.example", "https://app.example:443"].map(
    (origin) => [`the origin ${origin}`, "KEYHOLD_CORS_ORIGINS", { KEYHOLD_CORS_ORIGINS: origin }] as const,
  ),
  ...["*", "https://a.example", "a.example:443", "a.*.example", "*example.com", ".example", "a b", "fd00::1"].map(
    (name) => [`the host name ${name}`, "KEYHOLD_ALLOWED_HOSTS", { KEYHOLD_ALLOWED_HOSTS: name }] as const,
  ),
  ...["*", "true", "localhost", "10.0.0.1/8", "10.0.0.0/33", "fe80::1%eth0", "0.0.0.0/0", "::/0", "::ffff:0:0/96"].map(
    (proxy) => [`the proxy ${proxy}`, "KEYHOLD_TRUSTED_PROXIES", { KEYHOLD_TRUSTED_PROXIES: proxy }] as const,
  ),
  ...["0.0.0.0/1,128.0.0.0/1", "10.0.0.1,128.0.0.0/1, 64.0.0.0/2,0.0.0.0/2", "8000::/1,10.0.0.0/8,::/1"].flatMap(
    (all) =>
      [
        [`the proxies ${all}`, "KEYHOLD_TRUSTED_PROXIES", { KEYHOLD_TRUSTED_PROXIES: all }],
        [
          `the gateways ${all}`,
          "KEYHOLD_GATEWAY_NETWORKS",
          { KEYHOLD_GATEWAYS: "ext-authz", KEYHOLD_GATEWAY_CALLERS: "network", KEYHOLD_GATEWAY_NETWORKS: all },
        ],
      ] as const,
  ),
  ...["0", "257", "-1", "2.5", "all", "Auto"].map(
    (count) => [`${count} workers`, "KEYHOLD_WORKERS", { KEYHOLD_WORKERS: count }] as const,
  ),
  ["a grace period without a cache", "KEYHOLD_STALE_GRACE", { KEYHOLD_STALE_GRACE: "1s", KEYHOLD_CACHE_SIZE: "0" }],
  ["an unknown log level", "KEYHOLD_LOG_LEVEL", { KEYHOLD_LOG_LEVEL: "verbose" }],
  ...[
    ["OTEL_TRACES_EXPORTER", "zipkin"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"],
    ["OTEL_TRACES_SAMPLER", "parentbased"],
    ...["-0.1", "1.1", "all"].map((ratio) => ["OTEL_TRACES_SAMPLER_ARG", ratio] as const),
  ].map(([variable = "", value]) => {
    const others = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", OTEL_TRACES_SAMPLER: "traceidratio" };
    return [`${variable} ${value}`, variable, { ...others, [variable]: value }] as const;
  }),
];

describe("an environment is rejected with the name of the variable for", () => {
  test.each(table(BAD))("%s", (_, variable, environment) => {
    const error = refusalOf(environment);
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT", violations: [{ field: variable }] });
    expect(error.message).toMatch(new RegExp(`^${variable}: `));
  });

  test("no message contains a secret", () => {
    const secrets = [ROOT, OTHER_ROOT, ROOT.slice(1), OTHER_ROOT.slice(1), PASSWORD];
    const messages = table(BAD).map(([, , environment]) => refusalOf(environment).message);
    expect(messages.filter((message) => secrets.some((secret) => message.includes(secret)))).toEqual([]);
  });

  test("messages explain how to choose authentication and how to generate a root secret", () => {
    expect(refusalOf({ KEYHOLD_HOST: "0.0.0.0" }).message).toMatch(/0\.0\.0\.0: admin-token, oidc, or none/);
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
    expect(findConfigErrors({ ...byFile, ...byName })).toEqual([`${name}_FILE: must not be set beside ${name}`]);
    expect(findConfigErrors({ ...byFile, [`${name}_FILE`]: `${dir}/no` })).toContain(
      `${name}_FILE: ${dir}/no cannot be read (ENOENT)`,
    );
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
