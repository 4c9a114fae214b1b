import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { parseSecretPrefix } from "../../credential/format.ts";
import { type DurationBounds, parseDuration } from "../../domain/duration.ts";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import type { TokenLimits } from "../../keys/ports.ts";
import { isLoopbackHost } from "../../lib/host-names.ts";
import { ALGORITHM_NAMES } from "../../token/jwt/algorithms.ts";
import { RESERVED_CLAIMS } from "../../token/jwt/claims.ts";
import type { LogVerifications } from "../../transport/pipeline/access-log.ts";
import type { Address } from "../listening.ts";
import { toRootSecrets } from "../root-secrets/settings.ts";
import { toClientConfig } from "./client-config.ts";
import { toConsoleOidc } from "./console-oidc.ts";
import { toGateways } from "./gateways.ts";
import { publicOrigin, toKeyPages } from "./key-pages.ts";
import { toTracing } from "./tracing.ts";
import { unknownVariables } from "./unknown-variables.ts";
import { toUsage } from "./usage.ts";
import {
  type Environment,
  type Get,
  hostName,
  integer,
  list,
  names,
  networks,
  oneOf,
  origin,
  postgresUrl,
} from "./values.ts";
import { toWebhooks } from "./webhooks.ts";

export type Config = Readonly<ReturnType<typeof toConfig>>;

const LOG_VERIFICATIONS: readonly LogVerifications[] = ["all", "failed", "sampled"];
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/**
 * Reads the configuration from the environment and the files that it names. The only reader of the environment. Throws `INVALID_ARGUMENT`
 * naming the variable.
 */
export function readConfig(use?: Parameters<typeof toConfig>[1]): Config {
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

/** Reads the configuration of the commands that call a running server. Throws `INVALID_ARGUMENT` naming the variable. */
export function readClientConfig() {
  return toClientConfig(process.env);
}

/** Variables whose value may be in a file, as Docker and Kubernetes provide secrets. That of the root secret is read separately. */
const FILE_VARIABLES: Readonly<Record<string, string>> = {
  KEYHOLD_DATABASE_URL_FILE: "KEYHOLD_DATABASE_URL",
  KEYHOLD_DATABASE_LISTEN_URL_FILE: "KEYHOLD_DATABASE_LISTEN_URL",
  KEYHOLD_DATABASE_MIGRATE_URL_FILE: "KEYHOLD_DATABASE_MIGRATE_URL",
  KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET_FILE: "KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET",
};

/** Returns the environment with the values of these files. */
export function withFiles(environment: Environment): Environment {
  const read = Object.entries(FILE_VARIABLES).flatMap(([variable, name]) => {
    const file = environment[variable]?.trim();
    if (!file) return [];
    if (environment[name]?.trim()) throw invalidArgument(variable, `must not be set together with ${name}`);
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

/** Returns the configuration of an environment. Pure. An empty variable counts as not set. `migrate` needs no root secret. */
export function toConfig(environment: Environment, { withoutRootSecret = false } = {}) {
  const get = (name: string) => environment[name]?.trim() || undefined;
  /** Null: not set. */
  const optional = <T>(name: string, parse: (text: string, name: string) => T): T | null => {
    const text = get(name);
    return text === undefined ? null : parse(text, name);
  };
  const databaseUrl = optional("KEYHOLD_DATABASE_URL", postgresUrl);
  const sameDatabase = (text: string, name: string) => {
    if (databaseUrl === null) throw invalidArgument(name, "requires KEYHOLD_DATABASE_URL");
    return postgresUrl(text, name);
  };
  const auth = names("KEYHOLD_AUTH", get("KEYHOLD_AUTH"), ["admin-token", "oidc", "none"]);
  const port = integer("KEYHOLD_PORT", get("KEYHOLD_PORT") ?? "4420", 0, 65535);
  const config = {
    host: get("KEYHOLD_HOST") ?? "127.0.0.1",
    port,
    tls: toTls(get),
    /** Null for the embedded database in `dataDir`. */
    databaseUrl,
    /** URL for connections that receive notifications; null: `databaseUrl`. */
    databaseListenUrl: optional("KEYHOLD_DATABASE_LISTEN_URL", sameDatabase),
    /** URL of the owner of the schema, for `keyhold migrate` only; null: `databaseUrl`. */
    databaseMigrateUrl: optional("KEYHOLD_DATABASE_MIGRATE_URL", sameDatabase),
    /** TTL of the lease: how long a server may answer from its cache without contact to the database, in milliseconds. */
    leaseTtl: parseDuration(get("KEYHOLD_LEASE_TTL") ?? "3s", "KEYHOLD_LEASE_TTL", LEASE_BOUNDS),
    /** Milliseconds after the lease during which cached verdicts are returned, marked as stale; 0: never. */
    staleGrace: parseDuration(get("KEYHOLD_STALE_GRACE") ?? "0s", "KEYHOLD_STALE_GRACE", { min: 0, max: 86_400_000 }),
    /** Size of the verification cache in bytes; 0 disables it. */
    cacheBytes: integer("KEYHOLD_CACHE_SIZE", get("KEYHOLD_CACHE_SIZE") ?? DEFAULT_CACHE_SIZE, 0, 65_536) * MIB,
    databasePoolSize: integer("KEYHOLD_DATABASE_POOL_SIZE", get("KEYHOLD_DATABASE_POOL_SIZE") ?? "10", 1, 1000),
    dataDir: get("KEYHOLD_DATA_DIR") ?? "./data",
    ...toRootSecrets(get, databaseUrl !== null && !withoutRootSecret),
    secretPrefix: parseSecretPrefix(get("KEYHOLD_SECRET_PREFIX") ?? "kh", "KEYHOLD_SECRET_PREFIX"),
    issuer: get("KEYHOLD_ISSUER") ?? "keyhold",
    lifetimes: {
      /** Longest life of a key, in milliseconds; null: no limit. */
      maxKeyTtl: optional("KEYHOLD_MAX_KEY_TTL", parseDuration),
      /** Life of a key whose request asks for none, in milliseconds; null: the longest. */
      defaultKeyTtl: optional("KEYHOLD_DEFAULT_KEY_TTL", parseDuration),
    },
    tokenLimits: toTokenLimits(get("KEYHOLD_MAX_TOKEN_TTL"), get("KEYHOLD_ALLOWED_CLAIMS")),
    /** Times before the expiry of a key at which a warning is recorded, in milliseconds. */
    expiryWarnings: toExpiryWarnings(get("KEYHOLD_EXPIRY_WARNINGS")),
    /** Algorithm of new signing keys; null: that of the active key, EdDSA for the first one. */
    signingAlgorithm: optional("KEYHOLD_SIGNING_ALGORITHM", (text, name) => oneOf(name, text, ALGORITHM_NAMES)),
    /** Empty if not configured; the server then listens on loopback only. */
    auth,
    oidc: toOidc(get),
    corsOrigins: list(get("KEYHOLD_CORS_ORIGINS")).map((text) => origin(text, "KEYHOLD_CORS_ORIGINS")),
    hasConsole: toConsole(get("KEYHOLD_CONSOLE"), auth),
    consoleOidc: toConsoleOidc(get),
    /** Where browsers reach the console and the key page; null: at the address of the server, if that is a loopback address. */
    consoleOrigin: optional("KEYHOLD_CONSOLE_URL", publicOrigin),
    keyPages: toKeyPages(get),
    /** Host names, in addition to those of the loopback, that the metrics and a service without authentication accept. */
    allowedHosts: list(get("KEYHOLD_ALLOWED_HOSTS")).map(hostName),
    /** Canonical CIDR blocks of proxies whose `X-Forwarded-For` is trusted. */
    trustedProxies: networks("KEYHOLD_TRUSTED_PROXIES", get("KEYHOLD_TRUSTED_PROXIES")),
    usage: toUsage(get),
    /** What is stored of the addresses of clients that use keys. */
    lastUsedAddress: oneOf("KEYHOLD_LAST_USED_ADDRESS", get("KEYHOLD_LAST_USED_ADDRESS") ?? "off", [
      "off",
      "truncated",
      "full",
    ]),
    /** Where webhooks may be sent. */
    webhooks: toWebhooks(get),
    gateways: toGateways(get),
    /** Limit of calls per second without a credential from one address; null: none. */
    publicRate: toRate("KEYHOLD_PUBLIC_RATE", get("KEYHOLD_PUBLIC_RATE")),
    /** Limit of calls per second with a rejected credential from one address or caller; null: none. */
    failureRate: toRate("KEYHOLD_FAILURE_RATE", get("KEYHOLD_FAILURE_RATE")),
    /** Limits of failed verifications per second of the clients of one address, and of one caller; null: none. */
    verificationFailureRate: toRate("KEYHOLD_VERIFICATION_FAILURE_RATE", get("KEYHOLD_VERIFICATION_FAILURE_RATE")),
    callerVerificationFailureRate: toRate(
      "KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE",
      get("KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE") ?? "1000",
    ),
    /** Limits of changes, and of imported keys, per second by one caller; null: none. */
    changeRate: toRate("KEYHOLD_CHANGE_RATE", get("KEYHOLD_CHANGE_RATE")),
    importRate: toRate("KEYHOLD_IMPORT_RATE", get("KEYHOLD_IMPORT_RATE") ?? "5000"),
    /** Processes that serve the port; `auto`: one per core. */
    workers: toWorkers("KEYHOLD_WORKERS", get("KEYHOLD_WORKERS") ?? "1"),
    /** Memory for incoming request bodies of one process, in bytes: at least one batch import; null: a share of the available memory. */
    requestBufferBytes: optional("KEYHOLD_REQUEST_BUFFER_SIZE", (text, name) => integer(name, text, 32, 65_536) * MIB),
    /** Whether the fast path serves complete verifications. Without it, Fastify serves them with the same results. */
    fastPath: oneOf("KEYHOLD_FAST_PATH", get("KEYHOLD_FAST_PATH") ?? "on", ["on", "off"]) === "on",
    logLevel: oneOf("KEYHOLD_LOG_LEVEL", get("KEYHOLD_LOG_LEVEL") ?? "info", LOG_LEVELS),
    /** Which verifications are logged; those with a rejected credential always are. */
    logVerifications: oneOf("KEYHOLD_LOG_VERIFICATIONS", get("KEYHOLD_LOG_VERIFICATIONS") ?? "all", LOG_VERIFICATIONS),
    /** Address of the metrics; port 0: a free port; null: off. */
    metrics: toMetrics(get("KEYHOLD_METRICS_HOST"), get("KEYHOLD_METRICS_PORT"), port),
    /** Null: OpenTelemetry is not loaded. OpenTelemetry reads the address of the collector itself. */
    tracing: toTracing(get),
  };
  requireConsistent(config);
  return config;
}

function requireConsistent(config: Config): void {
  const { auth, oidc, consoleOidc, consoleOrigin, host, staleGrace, cacheBytes, lifetimes, gateways, tls } = config;
  const { maxKeyTtl, defaultKeyTtl } = lifetimes;
  if (maxKeyTtl !== null && defaultKeyTtl !== null && defaultKeyTtl > maxKeyTtl) {
    throw invalidArgument("KEYHOLD_DEFAULT_KEY_TTL", "must not be longer than KEYHOLD_MAX_KEY_TTL");
  }
  if (staleGrace > 0 && cacheBytes === 0) {
    throw invalidArgument("KEYHOLD_STALE_GRACE", "requires a cache, but KEYHOLD_CACHE_SIZE is 0");
  }
  if (auth.includes("oidc") && oidc === null) {
    throw invalidArgument("KEYHOLD_AUTH", "oidc requires KEYHOLD_OIDC_ISSUER and KEYHOLD_OIDC_AUDIENCE");
  }
  if (oidc !== null && !auth.includes("oidc")) {
    throw invalidArgument("KEYHOLD_AUTH", "must contain oidc when KEYHOLD_OIDC_ISSUER is set");
  }
  if (consoleOidc !== null && oidc === null) {
    throw invalidArgument("KEYHOLD_CONSOLE_OIDC_CLIENT_ID", "requires KEYHOLD_AUTH with oidc");
  }
  if (consoleOidc !== null && consoleOrigin === null && !isLoopback(host)) {
    throw invalidArgument(
      "KEYHOLD_CONSOLE_URL",
      `is required with KEYHOLD_CONSOLE_OIDC_CLIENT_ID to listen on ${host}: the origin at which browsers reach the console`,
    );
  }
  if (gateways.clientCaFile !== null && tls === null) {
    throw invalidArgument(
      "KEYHOLD_GATEWAY_CLIENT_CA_FILE",
      "requires KEYHOLD_TLS_CERT_FILE, because client certificates are part of TLS",
    );
  }
  const remote = [host, gateways.address?.host].find((name) => name !== undefined && !isLoopback(name));
  if (auth.length === 0 && remote !== undefined) {
    throw invalidArgument(
      "KEYHOLD_AUTH",
      `is required to listen on ${remote}: use admin-token, oidc, or none to allow unauthenticated access`,
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

/** Connections of a process outside its pool (docs/configuration.md, KEYHOLD_DATABASE_POOL_SIZE), with a margin. */
export const OUTSIDE_POOL = 10;

/** `name` is the variable, or the equivalent option of the command. */
export function toWorkers(name: string, text: string): number | "auto" {
  return text === "auto" ? "auto" : integer(name, text, 1, 256, "auto or a whole number");
}

/** The default exceeds what honest clients need, even some thousand behind one proxy. */
function toRate(name: string, text = "100"): number | null {
  return text === "off" ? null : integer(name, text, 1, 1_000_000, "must be off or a whole number");
}

/** In milliseconds. */
const WARNING_BOUNDS: DurationBounds = { min: 60_000, max: 366 * 86_400_000 };

const MAX_WARNINGS = 10;

function toExpiryWarnings(text = "30d,7d,1d"): readonly number[] {
  const name = "KEYHOLD_EXPIRY_WARNINGS";
  const warnings = text === "off" ? [] : list(text).map((one) => parseDuration(one, name, WARNING_BOUNDS));
  if (warnings.length > MAX_WARNINGS) throw invalidArgument(name, `must have at most ${MAX_WARNINGS} durations`);
  return warnings;
}

/** Default: on, unless everyone who reaches the port could use it. */
function toConsole(text: string | undefined, auth: readonly string[]): boolean {
  return oneOf("KEYHOLD_CONSOLE", text ?? (auth.includes("none") ? "off" : "on"), ["on", "off"]) === "on";
}

/** Default: the port after that of the service, or a free one if that is unknown or the last. */
function toMetrics(host = "127.0.0.1", text: string | undefined, port: number): Address | null {
  if (text === "off") return null;
  const next = port === 0 || port === 65535 ? "0" : String(port + 1);
  return { host, port: integer("KEYHOLD_METRICS_PORT", text ?? next, 0, 65535, "must be off or a whole number") };
}

function toTls(get: Get) {
  const pair = pairOf(get, "KEYHOLD_TLS_CERT_FILE", "KEYHOLD_TLS_KEY_FILE");
  return pair && { certFile: pair[0], keyFile: pair[1] };
}

/** Returns the values of two variables that require each other; null if neither is set. */
function pairOf(get: Get, one: string, other: string): readonly [string, string] | null {
  const [first, second] = [get(one), get(other)];
  if (first !== undefined && second !== undefined) return [first, second];
  if (first !== undefined) throw invalidArgument(other, `is required with ${one}`);
  if (second !== undefined) throw invalidArgument(one, `is required with ${other}`);
  return null;
}

function toOidc(get: Get) {
  const [issuer, audience] = pairOf(get, "KEYHOLD_OIDC_ISSUER", "KEYHOLD_OIDC_AUDIENCE") ?? [];
  const [scopeClaim = "scope", actorsClaim] = [get("KEYHOLD_OIDC_SCOPE_CLAIM"), get("KEYHOLD_OIDC_ACTORS_CLAIM")];
  if (issuer !== undefined && audience !== undefined)
    return { issuer: issuerUrl(issuer), audience, scopeClaim, ...(actorsClaim !== undefined && { actorsClaim }) };
  if (actorsClaim !== undefined) throw invalidArgument("KEYHOLD_OIDC_ACTORS_CLAIM", "requires KEYHOLD_OIDC_ISSUER");
  return null;
}

function issuerUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#]/.test(text))
    throw invalidArgument("KEYHOLD_OIDC_ISSUER", "must be an https URL without a query or fragment");
  if (url.protocol === "http:" && !isLoopbackHost(url.host))
    throw invalidArgument(
      "KEYHOLD_OIDC_ISSUER",
      "must be an https URL: over http, an attacker on the network could replace the issuer's keys (http is allowed only for loopback addresses)",
    );
  return text;
}

/** Returns what derived tokens may have. A name that is not registered is allowed anyway, and may be registered in a later release. */
function toTokenLimits(maxTtl = "30d", allowedClaims: string | undefined): TokenLimits {
  const allowed = list(allowedClaims);
  const reserved = allowed.find((name) => RESERVED_CLAIMS.has(name));
  if (reserved !== undefined)
    throw invalidArgument("KEYHOLD_ALLOWED_CLAIMS", `must not contain ${reserved}, which Keyhold itself sets`);
  return { maxTtl: parseDuration(maxTtl, "KEYHOLD_MAX_TOKEN_TTL"), allowedClaims: new Set(allowed) };
}
