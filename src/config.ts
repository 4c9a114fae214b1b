import { isIP } from "node:net";
import { parseSecretPrefix, type SecretPrefix } from "./credential/format.ts";
import { invalidArgument } from "./errors.ts";
import { type DurationBounds, parseDuration } from "./lib/duration.ts";
import { parseRootSecret, type RootSecrets } from "./lib/server-keys.ts";

/** The environment, as text by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Ways to know a caller (contract §7). */
export type AuthMethod = "admin-token" | "oidc" | "none";

export interface OidcConfig {
  readonly issuer: string;
  readonly audience: string;
  readonly scopeClaim: string;
}

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  /** Null: the embedded database in `dataDir`. */
  readonly databaseUrl: string | null;
  readonly databasePoolSize: number;
  /** Where notifications are heard; null: at `databaseUrl`. */
  readonly databaseListenUrl: string | null;
  /** How long a server may answer from memory without having heard from the database, in milliseconds. */
  readonly leaseTtl: number;
  /** Memory of the verification cache in bytes; 0: none. */
  readonly cacheBytes: number;
  readonly dataDir: string;
  /** Null: made at first start, in `dataDir`; only with the embedded database. */
  readonly rootSecrets: RootSecrets | null;
  readonly secretPrefix: SecretPrefix;
  readonly issuer: string;
  /** Empty: nobody chose, so the server listens on loopback alone. */
  readonly auth: readonly AuthMethod[];
  readonly oidc: OidcConfig | null;
  readonly corsOrigins: readonly string[];
  /** Processes that serve the port; `auto`: as many as the machine has cores. */
  readonly workers: number | "auto";
  readonly logLevel: string;
}

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const AUTH_METHODS: readonly AuthMethod[] = ["admin-token", "oidc", "none"];

/** The only reader of the environment. Throws `INVALID_ARGUMENT` naming the variable. */
export function readConfig(): Config {
  return toConfig(process.env);
}

/** Pure: the configuration that an environment asks for. An empty variable counts as one that is not there. */
export function toConfig(environment: Environment): Config {
  const get = (name: string) => environment[name]?.trim() || undefined;
  const databaseUrl = get("KEYHOLD_DATABASE_URL") ?? null;
  const config: Config = {
    host: get("KEYHOLD_HOST") ?? "127.0.0.1",
    port: integer("KEYHOLD_PORT", get("KEYHOLD_PORT") ?? "4420", 0, 65535),
    tls: toTls(get("KEYHOLD_TLS_CERT_FILE"), get("KEYHOLD_TLS_KEY_FILE")),
    databaseUrl: databaseUrl === null ? null : postgresUrl("KEYHOLD_DATABASE_URL", databaseUrl),
    databaseListenUrl: toListenUrl(get("KEYHOLD_DATABASE_LISTEN_URL"), databaseUrl !== null),
    leaseTtl: parseDuration(get("KEYHOLD_LEASE_TTL") ?? "3s", "KEYHOLD_LEASE_TTL", LEASE_BOUNDS),
    cacheBytes: integer("KEYHOLD_CACHE_SIZE", get("KEYHOLD_CACHE_SIZE") ?? DEFAULT_CACHE_SIZE, 0, 65_536) * MIB,
    databasePoolSize: integer("KEYHOLD_DATABASE_POOL_SIZE", get("KEYHOLD_DATABASE_POOL_SIZE") ?? "10", 1, 1000),
    dataDir: get("KEYHOLD_DATA_DIR") ?? "./data",
    rootSecrets: toRootSecrets(get("KEYHOLD_ROOT_SECRET"), get("KEYHOLD_ROOT_SECRETS_RETIRED"), databaseUrl !== null),
    secretPrefix: parseSecretPrefix(get("KEYHOLD_SECRET_PREFIX") ?? "kh", "KEYHOLD_SECRET_PREFIX"),
    issuer: get("KEYHOLD_ISSUER") ?? "keyhold",
    auth: toAuth(get("KEYHOLD_AUTH")),
    oidc: toOidc(get("KEYHOLD_OIDC_ISSUER"), get("KEYHOLD_OIDC_AUDIENCE"), get("KEYHOLD_OIDC_SCOPE_CLAIM")),
    corsOrigins: list(get("KEYHOLD_CORS_ORIGINS")).map(origin),
    workers: toWorkers("KEYHOLD_WORKERS", get("KEYHOLD_WORKERS") ?? "1"),
    logLevel: oneOf("KEYHOLD_LOG_LEVEL", get("KEYHOLD_LOG_LEVEL") ?? "info", LOG_LEVELS),
  };
  requireConsistent(config);
  return config;
}

function requireConsistent({ auth, oidc, host }: Config): void {
  if (auth.includes("oidc") && oidc === null) {
    throw invalidArgument("KEYHOLD_AUTH", "has oidc, which needs KEYHOLD_OIDC_ISSUER and KEYHOLD_OIDC_AUDIENCE");
  }
  if (oidc !== null && !auth.includes("oidc")) {
    throw invalidArgument("KEYHOLD_AUTH", "must have oidc when KEYHOLD_OIDC_ISSUER is set");
  }
  if (auth.length === 0 && !isLoopback(host)) {
    throw invalidArgument(
      "KEYHOLD_AUTH",
      `must be chosen before the server listens on ${host}: admin-token, oidc, or none to let everyone in`,
    );
  }
}

/** Addresses that no other machine reaches (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3). */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith("127.");
  return host === "localhost" || host === "::1";
}

const MIB = 1024 * 1024;

/** MiB. A million keys need about half of it. */
const DEFAULT_CACHE_SIZE = "512";

/** In milliseconds. Shorter ones would be lost to a busy machine; longer ones make a change wait for a server that died. */
const LEASE_BOUNDS: DurationBounds = { min: 1_000, max: 60_000 };

function toListenUrl(url: string | undefined, hasDatabase: boolean): string | null {
  if (url === undefined) return null;
  if (!hasDatabase) throw invalidArgument("KEYHOLD_DATABASE_LISTEN_URL", "goes with KEYHOLD_DATABASE_URL");
  return postgresUrl("KEYHOLD_DATABASE_LISTEN_URL", url);
}

/** `name` is that of the variable, or of the option of the command that says the same. */
export function toWorkers(name: string, text: string): Config["workers"] {
  return text === "auto" ? "auto" : integer(name, text, 1, 256, "auto or a whole number");
}

function toTls(certFile: string | undefined, keyFile: string | undefined): Config["tls"] {
  if (certFile === undefined && keyFile === undefined) return null;
  if (certFile === undefined) throw invalidArgument("KEYHOLD_TLS_CERT_FILE", "goes with KEYHOLD_TLS_KEY_FILE");
  if (keyFile === undefined) throw invalidArgument("KEYHOLD_TLS_KEY_FILE", "goes with KEYHOLD_TLS_CERT_FILE");
  return { certFile, keyFile };
}

function toRootSecrets(
  current: string | undefined,
  retired: string | undefined,
  isRequired: boolean,
): RootSecrets | null {
  if (current !== undefined) {
    if (current.includes(",")) {
      throw invalidArgument("KEYHOLD_ROOT_SECRET", "must not have a comma: it could not be one of those retired later");
    }
    return {
      current: parseRootSecret(current, "KEYHOLD_ROOT_SECRET"),
      retired: list(retired).map((secret) => parseRootSecret(secret, "KEYHOLD_ROOT_SECRETS_RETIRED")),
    };
  }
  if (retired !== undefined) throw invalidArgument("KEYHOLD_ROOT_SECRETS_RETIRED", "goes with KEYHOLD_ROOT_SECRET");
  if (isRequired) {
    throw invalidArgument(
      "KEYHOLD_ROOT_SECRET",
      "is needed with KEYHOLD_DATABASE_URL, the same on every server: openssl rand -base64 32",
    );
  }
  return null;
}

function toAuth(text: string | undefined): AuthMethod[] {
  return [...new Set(list(text))].map((name) => oneOf("KEYHOLD_AUTH", name, AUTH_METHODS));
}

function toOidc(issuer: string | undefined, audience: string | undefined, scopeClaim = "scope"): OidcConfig | null {
  if (issuer === undefined && audience === undefined) return null;
  if (issuer === undefined) throw invalidArgument("KEYHOLD_OIDC_ISSUER", "goes with KEYHOLD_OIDC_AUDIENCE");
  if (audience === undefined) throw invalidArgument("KEYHOLD_OIDC_AUDIENCE", "goes with KEYHOLD_OIDC_ISSUER");
  return { issuer: issuerUrl(issuer), audience, scopeClaim };
}

function issuerUrl(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? "") && !/[?#]/.test(text)) return text;
  throw invalidArgument("KEYHOLD_OIDC_ISSUER", "must be an http or https URL without query and fragment");
}

/** As browsers write it (RFC 6454 §6.2); another text would never be equal to what they send. */
function origin(text: string): string {
  const url = URL.parse(text);
  if (url !== null && text === `${url.protocol}//${url.host}`) return text;
  throw invalidArgument("KEYHOLD_CORS_ORIGINS", "must be origins such as https://app.example.com, separated by commas");
}

/** The text is not in the message: there may be a password in it. */
function postgresUrl(name: string, text: string): string {
  const protocol = URL.canParse(text) ? new URL(text).protocol : "";
  if (protocol === "postgres:" || protocol === "postgresql:") return text;
  throw invalidArgument(name, "must be of the form postgres://user:password@host:5432/database");
}

function list(text: string | undefined): string[] {
  return (text ?? "").split(",").flatMap((item) => item.trim() || []);
}

function integer(name: string, text: string, min: number, max: number, form = "a whole number"): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalidArgument(name, `must be ${form} from ${min} to ${max}`);
}

function oneOf<T extends string>(name: string, text: string, allowed: readonly T[]): T {
  const value = allowed.find((one) => one === text);
  if (value === undefined) throw invalidArgument(name, `must be one of ${allowed.join(", ")}`);
  return value;
}
