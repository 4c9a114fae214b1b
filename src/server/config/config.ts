import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { parseSecretPrefix } from "../../credential/format.ts";
import { type DurationBounds, parseDuration } from "../../domain/duration.ts";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { isLoopbackHost } from "../../lib/host-names.ts";
import { ALGORITHM_NAMES, type AlgorithmName } from "../../token/jwt/algorithms.ts";
import type { Address } from "../listening.ts";
import { toRootSecrets } from "../root-secrets/settings.ts";
import { toGateways } from "./gateways.ts";
import { toTokenLimits } from "./token-limits.ts";
import { toTracing } from "./tracing.ts";
import { unknownVariables } from "./unknown-variables.ts";
import { hostName, integer, list, networks, oneOf, origin, postgresUrl, serverUrl } from "./values.ts";

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The configuration of a server. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

/** Parts that are not required: `migrate` needs no root secret. */
export interface ConfigUse {
  readonly withoutRootSecret?: boolean;
}

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const AUTH_METHODS = ["admin-token", "oidc", "none"] as const;

/**
 * Reads the configuration from the environment and the files that it names. The only reader of the environment. Throws `INVALID_ARGUMENT`
 * naming the variable.
 */
export function readConfig(use?: ConfigUse): Config {
  return toConfig(withFiles(process.env), use);
}

/**
 * Returns the errors of the environment that can be found in one pass: each rejected variable is removed to find the next. An error that
 * cannot be removed, such as a missing root secret, hides those after it.
 */
export function findConfigErrors(environment: Environment = process.env): string[] {
  const found = new Map<string, string>();
  for (;;) {
    const left = Object.entries(environment).filter(([name]) => !found.has(name));
    try {
      toConfig(withFiles(Object.fromEntries(left)));
      return [...found.values()];
    } catch (error) {
      if (!(error instanceof KeyholdError)) throw error;
      const field = error.violations[0]?.field;
      if (field === undefined || found.has(field)) return [...found.values()];
      found.set(field, error.message);
    }
  }
}

/** Returns a warning for each unknown variable that starts with `KEYHOLD_`. */
export function findUnknownVariables(environment: Environment = process.env): string[] {
  return unknownVariables(environment, [withFiles, toConfig, toClientConfig]);
}

/** Variables whose value may be in a file, as Docker and Kubernetes provide secrets. That of the root secret is read separately. */
const FILE_VARIABLES: Readonly<Record<string, string>> = {
  KEYHOLD_DATABASE_URL_FILE: "KEYHOLD_DATABASE_URL",
  KEYHOLD_DATABASE_LISTEN_URL_FILE: "KEYHOLD_DATABASE_LISTEN_URL",
  KEYHOLD_DATABASE_MIGRATE_URL_FILE: "KEYHOLD_DATABASE_MIGRATE_URL",
};

/** Returns the environment with the values of these files. */
export function withFiles(environment: Environment): Environment {
  const read = Object.entries(FILE_VARIABLES).flatMap(([variable, name]) => {
    const file = environment[variable]?.trim();
    if (!file) return [];
    if (environment[name]?.trim()) throw invalidArgument(variable, `must not be set beside ${name}`);
    return [[name, readVariable(variable, file)]];
  });
  return { ...environment, ...Object.fromEntries(read) };
}

function readVariable(variable: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw invalidArgument(variable, `${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Returns the configuration of an environment. Pure. An empty variable counts as not set. */
export function toConfig(environment: Environment, { withoutRootSecret = false }: ConfigUse = {}) {
  const get = (name: string) => environment[name]?.trim() || undefined;
  const databaseUrl = get("KEYHOLD_DATABASE_URL") ?? null;
  const port = integer("KEYHOLD_PORT", get("KEYHOLD_PORT") ?? "4420", 0, 65535);
  const config = {
    host: get("KEYHOLD_HOST") ?? "127.0.0.1",
    port,
    tls: toTls(get("KEYHOLD_TLS_CERT_FILE"), get("KEYHOLD_TLS_KEY_FILE")),
    /** Null for the embedded database in `dataDir`. */
    databaseUrl: databaseUrl === null ? null : postgresUrl("KEYHOLD_DATABASE_URL", databaseUrl),
    /** URL for connections that receive notifications; null: `databaseUrl`. */
    databaseListenUrl: otherUrl("KEYHOLD_DATABASE_LISTEN_URL", get("KEYHOLD_DATABASE_LISTEN_URL"), databaseUrl),
    /** URL of the owner of the schema, for `keyhold migrate` only; null: `databaseUrl`. */
    databaseMigrateUrl: otherUrl("KEYHOLD_DATABASE_MIGRATE_URL", get("KEYHOLD_DATABASE_MIGRATE_URL"), databaseUrl),
    /** TTL of the lease: how long a server may answer from its cache without contact to the database, in milliseconds. */
    leaseTtl: parseDuration(get("KEYHOLD_LEASE_TTL") ?? "3s", "KEYHOLD_LEASE_TTL", LEASE_BOUNDS),
    /** Milliseconds after the lease during which cached verdicts are returned, marked as stale; 0: never. */
    staleGrace: parseDuration(get("KEYHOLD_STALE_GRACE") ?? "0s", "KEYHOLD_STALE_GRACE", STALE_GRACE_BOUNDS),
    /** Size of the verification cache in bytes; 0 disables it. */
    cacheBytes: integer("KEYHOLD_CACHE_SIZE", get("KEYHOLD_CACHE_SIZE") ?? DEFAULT_CACHE_SIZE, 0, 65_536) * MIB,
    databasePoolSize: integer("KEYHOLD_DATABASE_POOL_SIZE", get("KEYHOLD_DATABASE_POOL_SIZE") ?? "10", 1, 1000),
    dataDir: get("KEYHOLD_DATA_DIR") ?? "./data",
    ...toRootSecrets(get, databaseUrl !== null && !withoutRootSecret),
    secretPrefix: parseSecretPrefix(get("KEYHOLD_SECRET_PREFIX") ?? "kh", "KEYHOLD_SECRET_PREFIX"),
    issuer: get("KEYHOLD_ISSUER") ?? "keyhold",
    lifetimes: {
      /** Longest life of a key, in milliseconds; null: no limit. */
      maxKeyTtl: toTtl("KEYHOLD_MAX_KEY_TTL", get("KEYHOLD_MAX_KEY_TTL")),
      /** Life of a key whose request asks for none, in milliseconds; null: the longest. */
      defaultKeyTtl: toTtl("KEYHOLD_DEFAULT_KEY_TTL", get("KEYHOLD_DEFAULT_KEY_TTL")),
    },
    tokenLimits: toTokenLimits(get("KEYHOLD_MAX_TOKEN_TTL"), get("KEYHOLD_ALLOWED_CLAIMS")),
    /** Algorithm of new signing keys; null: that of the active key, EdDSA for the first one. */
    signingAlgorithm: toAlgorithm(get("KEYHOLD_SIGNING_ALGORITHM")),
    /** Empty if not configured; the server then listens on loopback only. */
    auth: toAuth(get("KEYHOLD_AUTH")),
    oidc: toOidc(
      get("KEYHOLD_OIDC_ISSUER"),
      get("KEYHOLD_OIDC_AUDIENCE"),
      get("KEYHOLD_OIDC_SCOPE_CLAIM"),
      get("KEYHOLD_OIDC_ACTORS_CLAIM"),
    ),
    corsOrigins: list(get("KEYHOLD_CORS_ORIGINS")).map(origin),
    /** Host names, in addition to those of the loopback, that the metrics and a service without authentication accept. */
    allowedHosts: list(get("KEYHOLD_ALLOWED_HOSTS")).map(hostName),
    /** Canonical CIDR blocks of proxies whose `X-Forwarded-For` is trusted. */
    trustedProxies: networks("KEYHOLD_TRUSTED_PROXIES", get("KEYHOLD_TRUSTED_PROXIES")),
    /** What gateways may ask, and how. */
    gateways: toGateways(get),
    /** Limit of calls per second without a credential from one address; null: none. */
    publicRate: toRate("KEYHOLD_PUBLIC_RATE", get("KEYHOLD_PUBLIC_RATE")),
    /** Limit of calls per second with a rejected credential from one address or caller; null: none. */
    failureRate: toRate("KEYHOLD_FAILURE_RATE", get("KEYHOLD_FAILURE_RATE")),
    /** Processes that serve the port; `auto`: one per core. */
    workers: toWorkers("KEYHOLD_WORKERS", get("KEYHOLD_WORKERS") ?? "1"),
    /** Memory for incoming request bodies of one process, in bytes; null: a share of the available memory. */
    requestBufferBytes: toRequestBuffer(get("KEYHOLD_REQUEST_BUFFER_SIZE")),
    /** Whether the fast path serves usual verifications. Without it Fastify serves them with the same results. */
    fastPath: oneOf("KEYHOLD_FAST_PATH", get("KEYHOLD_FAST_PATH") ?? "on", ["on", "off"]) === "on",
    logLevel: oneOf("KEYHOLD_LOG_LEVEL", get("KEYHOLD_LOG_LEVEL") ?? "info", LOG_LEVELS),
    /** Address of the metrics; port 0: a free port; null: off. */
    metrics: toMetrics(get("KEYHOLD_METRICS_HOST"), get("KEYHOLD_METRICS_PORT"), port),
    /** Null: OpenTelemetry is not loaded. OpenTelemetry reads the address of the collector itself. */
    tracing: toTracing(get),
  };
  requireConsistent(config);
  return config;
}

/** The minimum holds one batch import of the maximum size. */
function toRequestBuffer(text: string | undefined): number | null {
  return text === undefined ? null : integer("KEYHOLD_REQUEST_BUFFER_SIZE", text, 32, 65_536) * MIB;
}

/** Reads the configuration of the commands that call a running server. Throws `INVALID_ARGUMENT` naming the variable. */
export function readClientConfig() {
  return toClientConfig(process.env);
}

/** Returns that configuration. Pure. */
export function toClientConfig(environment: Environment) {
  const get = (name: string) => environment[name]?.trim() || null;
  const token = get("KEYHOLD_TOKEN");
  const tokenFile = get("KEYHOLD_TOKEN_FILE");
  const url = get("KEYHOLD_URL");
  const home = get("HOME") ?? get("USERPROFILE");
  const configHome = get("XDG_CONFIG_HOME") ?? (home === null ? null : join(home, ".config"));
  if (token !== null && tokenFile !== null)
    throw invalidArgument("KEYHOLD_TOKEN_FILE", "cannot be set together with KEYHOLD_TOKEN");
  return {
    /** Null: not set. */
    url: url === null ? null : serverUrl("KEYHOLD_URL", url),
    /** The admin token, or the file that contains it; null: none is sent. */
    token,
    tokenFile,
    /** A file of certificates that are trusted in addition to those of Node. */
    caFile: get("KEYHOLD_CA_FILE"),
    /** Where `keyhold login` stores its context (XDG Base Directory Specification); null without a home folder. */
    contextFile: configHome === null ? null : join(configHome, "keyhold", "context.json"),
  };
}

function requireConsistent(config: Config): void {
  const { auth, oidc, host, staleGrace, cacheBytes, lifetimes, gateways, tls } = config;
  const { maxKeyTtl, defaultKeyTtl } = lifetimes;
  if (maxKeyTtl !== null && defaultKeyTtl !== null && defaultKeyTtl > maxKeyTtl) {
    throw invalidArgument("KEYHOLD_DEFAULT_KEY_TTL", "must not be longer than KEYHOLD_MAX_KEY_TTL");
  }
  if (staleGrace > 0 && cacheBytes === 0) {
    throw invalidArgument("KEYHOLD_STALE_GRACE", "needs a cache, and KEYHOLD_CACHE_SIZE is 0");
  }
  if (auth.includes("oidc") && oidc === null) {
    throw invalidArgument("KEYHOLD_AUTH", "has oidc, which needs KEYHOLD_OIDC_ISSUER and KEYHOLD_OIDC_AUDIENCE");
  }
  if (oidc !== null && !auth.includes("oidc")) {
    throw invalidArgument("KEYHOLD_AUTH", "must have oidc when KEYHOLD_OIDC_ISSUER is set");
  }
  if (gateways.clientCaFile !== null && tls === null) {
    throw invalidArgument("KEYHOLD_GATEWAY_CLIENT_CA_FILE", "needs KEYHOLD_TLS_CERT_FILE: TLS has client certificates");
  }
  const remote = [host, gateways.address?.host].find((name) => name !== undefined && !isLoopback(name));
  if (auth.length === 0 && remote !== undefined) {
    throw invalidArgument(
      "KEYHOLD_AUTH",
      `must be chosen before the server listens on ${remote}: admin-token, oidc, or none to let everyone in`,
    );
  }
}

/** Returns whether no other machine can reach the address (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3). */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith("127.");
  return host === "localhost" || host === "::1";
}

const MIB = 1024 * 1024;

/** MiB. One million keys need about half of it. */
const DEFAULT_CACHE_SIZE = "512";

/** In milliseconds. A busy machine would lose a shorter lease; with a longer one, a change waits longer for a crashed server. */
const LEASE_BOUNDS: DurationBounds = { min: 1_000, max: 60_000 };

/** In milliseconds. */
const STALE_GRACE_BOUNDS: DurationBounds = { min: 0, max: 86_400_000 };

/** Validates another URL of the same database. */
function otherUrl(name: string, url: string | undefined, databaseUrl: string | null): string | null {
  if (url === undefined) return null;
  if (databaseUrl === null) throw invalidArgument(name, "requires KEYHOLD_DATABASE_URL");
  return postgresUrl(name, url);
}

function toTtl(name: string, text: string | undefined): number | null {
  return text === undefined ? null : parseDuration(text, name);
}

/** `name` is the variable, or the equivalent option of the command. */
export function toWorkers(name: string, text: string): number | "auto" {
  return text === "auto" ? "auto" : integer(name, text, 1, 256, "auto or a whole number");
}

/** The default exceeds what honest clients need, even some thousand behind one proxy. */
function toRate(name: string, text = "100"): number | null {
  return text === "off" ? null : integer(name, text, 1, 1_000_000, "off or a whole number");
}

/** Default: the port after that of the service, or a free one if that is unknown or the last. */
function toMetrics(host = "127.0.0.1", text: string | undefined, port: number): Address | null {
  if (text === "off") return null;
  const next = port === 0 || port === 65535 ? "0" : String(port + 1);
  return { host, port: integer("KEYHOLD_METRICS_PORT", text ?? next, 0, 65535, "off or a whole number") };
}

function toTls(certFile: string | undefined, keyFile: string | undefined) {
  if (certFile === undefined && keyFile === undefined) return null;
  if (certFile === undefined) throw invalidArgument("KEYHOLD_TLS_CERT_FILE", "is required with KEYHOLD_TLS_KEY_FILE");
  if (keyFile === undefined) throw invalidArgument("KEYHOLD_TLS_KEY_FILE", "is required with KEYHOLD_TLS_CERT_FILE");
  return { certFile, keyFile };
}

function toAuth(text: string | undefined): readonly (typeof AUTH_METHODS)[number][] {
  return [...new Set(list(text))].map((name) => oneOf("KEYHOLD_AUTH", name, AUTH_METHODS));
}

function toAlgorithm(text: string | undefined): AlgorithmName | null {
  return text === undefined ? null : oneOf("KEYHOLD_SIGNING_ALGORITHM", text, ALGORITHM_NAMES);
}

function toOidc(
  issuer: string | undefined,
  audience: string | undefined,
  scopeClaim = "scope",
  actorsClaim: string | undefined,
) {
  if (issuer === undefined && audience === undefined) {
    if (actorsClaim !== undefined) throw invalidArgument("KEYHOLD_OIDC_ACTORS_CLAIM", "needs KEYHOLD_OIDC_ISSUER");
    return null;
  }
  if (issuer === undefined) throw invalidArgument("KEYHOLD_OIDC_ISSUER", "is required with KEYHOLD_OIDC_AUDIENCE");
  if (audience === undefined) throw invalidArgument("KEYHOLD_OIDC_AUDIENCE", "is required with KEYHOLD_OIDC_ISSUER");
  return { issuer: issuerUrl(issuer), audience, scopeClaim, ...(actorsClaim !== undefined && { actorsClaim }) };
}

function issuerUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#]/.test(text))
    throw invalidArgument("KEYHOLD_OIDC_ISSUER", "must be an https URL without query and fragment");
  if (url.protocol === "http:" && !isLoopbackHost(url.host))
    throw invalidArgument(
      "KEYHOLD_OIDC_ISSUER",
      "must be an https URL: over http, whoever is in between could replace the issuer's keys (http is for loopback addresses only)",
    );
  return text;
}
