import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import type { FastifyBaseLogger } from "fastify";
import type { ApiContext } from "../api/handler.ts";
import { implement } from "../api/implementations.ts";
import { adminTokens } from "../auth/admin-token.ts";
import type { CallLimits, Limiters } from "../auth/call-limits.ts";
import { type Authenticate, createGuard, type Guard } from "../auth/guard.ts";
import { oidcTokens } from "../auth/oidc.ts";
import { classify } from "../credential/kinds.ts";
import type { Verdict } from "../domain/verdict.ts";
import { type Clock, systemMonotonic } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import { RateLimiter } from "../lib/rate-limiter.ts";
import { createSource, type MetricsSource } from "../observability/metrics/source.ts";
import type { Tracing } from "../observability/tracing/tracing.ts";
import { createLastUsedStore } from "../postgres/last-used-store.ts";
import { recordRootSecretUse } from "../postgres/root-secret-use.ts";
import { createSigning, type Signing } from "../signing/signing.ts";
import { BodyBudget } from "../transport/body-budget.ts";
import { uncounted } from "../transport/call-metrics.ts";
import type { Checks } from "../transport/health.ts";
import { requestPolicy } from "../transport/host-check.ts";
import { createServer, type ServerOptions } from "../transport/server.ts";
import type { VerifyContext } from "../verify/context.ts";
import { createLastUsed, type LastUsed } from "../verify/last-used.ts";
import { verify, verifyAll } from "../verify/verify.ts";
import type { Config, OidcConfig } from "./config/config.ts";
import { cannotListen } from "./listening.ts";
import { Instruments, metricsOf, type Task } from "./metrics.ts";
import type { Resources } from "./resources.ts";
import { currentRootSecretId } from "./root-secrets/rings.ts";

/** A running server. */
export interface Service {
  /** Where it listens, such as `http://127.0.0.1:4420`. */
  readonly url: string;
  /** What is told in a scrape. */
  readonly metrics: MetricsSource;
  /** Stops accepting, finishes what is under way, and lets go of the database. */
  close(): Promise<void>;
}

/** Milliseconds. */
const LAST_USED_INTERVAL = 5_000;
const SIGNING_KEYS_INTERVAL = 30_000;

/** What the configuration does not say. */
export interface ServeOptions extends Pick<ServerOptions, "workers" | "drainDelay"> {
  /** On all metrics: which of several processes this is. */
  readonly metricLabels?: Readonly<Record<string, string>>;
  readonly tracing?: Tracing | undefined;
  /** How many exceptions nobody caught, for the metrics; without it another process tells. */
  readonly uncaught?: () => number;
}

/** Serves what the configuration asks for on an open resources, which goes with it. Nothing is left open if it throws. */
export async function serve(
  config: Config,
  resources: Resources,
  logger: FastifyBaseLogger,
  options: ServeOptions,
): Promise<Service> {
  try {
    return await listen(config, resources, logger, options);
  } catch (error) {
    await resources.close();
    throw error;
  }
}

async function listen(
  config: Config,
  resources: Resources,
  logger: FastifyBaseLogger,
  { metricLabels, tracing, uncaught, ...options }: ServeOptions,
): Promise<Service> {
  const meters = new Instruments(createLimiters(config));
  /** Without a port for metrics nobody reads what every call would count. */
  const isCounting = config.metrics !== null;
  const onUnusable = (kid: string) =>
    logger.warn({ kid }, "a retired signing key does not unwrap: its tokens are refused");
  const onLost = () => resources.reader.clear();
  await resources.coherence.membership.join();
  const signing = await createSigning({ ...resources.signing, onUnusable, onLost });
  await recordRootSecretUse(resources.database, currentRootSecretId(resources.rings));
  const lastUsed = createLastUsed(createLastUsedStore(resources.database), resources.keys.clock);
  const context = createVerifyContext(config, resources, signing, lastUsed, logger);
  const api = createApi(config, resources, signing, {
    ...context,
    onVerdict: isCounting ? meters.onVerdict : () => {},
    onStale: staleVerdicts(config, resources, meters, logger),
  });
  let isStopping = false;
  const checks = () => (isStopping ? NOT_READY : readinessOf(resources, signing));
  const strict = strictly(context);
  const fastify = await createServer({
    implementations: implement(api),
    // What callers present to be let in is not counted as a verdict: nobody asked for one.
    guard: await configuredGuard(config, resources, (credential) => verify(strict, credential), meters.limits),
    checkReadiness: async () => checks(),
    counters: isCounting ? meters.calls : uncounted,
    limiter: meters.limiter,
    ...(tracing && { tracer: tracing }),
    logger,
    certificate: config.tls === null ? undefined : await readCertificate(config.tls),
    corsOrigins: config.corsOrigins,
    requestPolicy: requestPolicy(config),
    fastPath: config.fastPath,
    bodyBudget: new BodyBudget(config.requestBufferBytes ?? defaultRequestBuffer(options.workers?.().configured)),
    ...options,
  });
  const stopWork = startBackgroundWork(resources, signing, lastUsed, logger, meters.failures);
  const close = async () => {
    isStopping = true;
    // Calls in flight are answered under the lease, and the node acknowledges barriers meanwhile, so that no change waits for it.
    await fastify.close();
    await resources.coherence.membership.leave();
    await stopWork();
    await resources.close();
    // A collector that is away is no reason not to stop.
    await tracing?.close().catch((err) => logger.warn({ err }, "the last spans could not be sent"));
  };
  try {
    const listenTextResolver = () => "the port is open";
    const { host, port } = config;
    const address = await fastify.listen({ host, port, listenTextResolver }).catch((error) => {
      throw error.syscall === undefined ? error : cannotListen("KEYHOLD", config, error);
    });
    // Fastify does not know that the port speaks TLS.
    const url = config.tls === null ? address : address.replace(/^http:/, "https:");
    const isReady = () => Object.values(checks()).every(Boolean);
    const measured = { resources, signing, lastUsed, isReady, leaseTtl: config.leaseTtl, meters, uncaught };
    return { url, metrics: createSource(await metricsOf(measured), metricLabels), close };
  } catch (error) {
    await stopWork();
    throw error;
  }
}

const MIB = 2 ** 20;

/** Returns an eighth of the memory that all processes of the server may use, for each its part: from 32 to 256 MiB. */
function defaultRequestBuffer(processes = 1): number {
  const available = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  return Math.min(Math.max(available / 8 / processes, 32 * MIB), 256 * MIB);
}

/** What verification works with, made of what is open. Nobody counts its verdicts. */
export function createVerifyContext(
  { issuer }: Config,
  { keys, reader, rings, shapes }: Resources,
  signing: Signing,
  lastUsed: LastUsed,
  logger: Pick<FastifyBaseLogger, "error">,
): VerifyContext {
  return {
    findKey: reader.findKey,
    findStale: reader.findStale,
    identities: reader.identities,
    clock: keys.clock,
    shapes,
    issuer,
    rings,
    publicKey: signing.publicKey,
    onValid: lastUsed.note,
    onVerdict: () => {},
    onStale: () => {},
    onFault: (error) => logger.error({ err: error }, "a verdict could not be reached"),
  };
}

/** Counts verdicts that are stale. The log has the first one after each lease. */
function staleVerdicts(
  { staleGrace }: Config,
  { coherence }: Resources,
  meters: Instruments,
  logger: FastifyBaseLogger,
) {
  let loggedAfter: number | null = null;
  return () => {
    meters.staleVerdicts++;
    const { grants } = coherence.membership.lease;
    if (grants === loggedAfter) return;
    loggedAfter = grants;
    const message = "the database is unreachable: cached verdicts are given, marked as stale, until the grace is over";
    logger.warn({ stale_grace_ms: staleGrace }, message);
  };
}

/** The same without verdicts that may be stale. */
function strictly(context: VerifyContext): VerifyContext {
  return { ...context, findStale: () => undefined };
}

/** What the RPCs work with. */
export function createApi(
  { issuer }: Config,
  { keys, rings }: Resources,
  signing: Signing,
  context: VerifyContext,
): ApiContext {
  const { clock, random } = keys;
  const strict = strictly(context);
  return {
    keys,
    derive: { clock, random, issuer, macaroonRoot: rings.macaroonRoot, signer: signing.signer },
    issuer,
    verify: (credential, mode) => verify(context, credential, mode),
    verifyStrictly: (credential) => verify(strict, credential),
    verifyAll: (credentials, mode) => verifyAll(context, credentials, mode),
    jwks: signing.jwks,
  };
}

async function configuredGuard(
  { auth, oidc }: Config,
  { keys, shapes }: Resources,
  verifyToken: (credential: string) => MaybePromise<Verdict>,
  limits: CallLimits,
): Promise<Guard> {
  const isAdminToken = (credential: string) => classify(credential, shapes).type === "ISSUED_API_KEY";
  const authenticators: Authenticate[] = [];
  for (const method of auth) {
    if (method === "admin-token") authenticators.push(adminTokens(isAdminToken, verifyToken));
    if (method === "oidc" && oidc !== null) authenticators.push(await oidcAuthenticator(oidc, keys.clock));
  }
  return createGuard({ authenticators, allowUnauthenticated: auth.length === 0 || auth.includes("none"), limits });
}

/** Seconds for which a bucket may be emptied faster than it fills. */
const BURST_TIME = 10;

/** Addresses and callers that each limiter remembers: 10 MB. */
const MAX_BUCKETS = 50_000;

function createLimiters({ publicRate, failureRate }: Config): Limiters {
  const limiter = (rate: number | null) =>
    rate === null
      ? null
      : new RateLimiter({ rate, burst: rate * BURST_TIME, maxBuckets: MAX_BUCKETS, monotonic: systemMonotonic });
  return { public: limiter(publicRate), failures: limiter(failureRate) };
}

/** Loaded where it is asked for: it is a tenth of what the server else has in memory. */
async function oidcAuthenticator(oidc: OidcConfig, clock: Clock): Promise<Authenticate> {
  const { createOidcVerifier } = await import("../token/oidc/verifier.ts");
  return oidcTokens(createOidcVerifier({ ...oidc, clock }));
}

const NOT_READY: Checks = { database: false, signing_keys: false };

/** A lease is as good as an answer of the database, and cannot be kept waiting by a busy one. */
function readinessOf({ coherence }: Resources, signing: Signing): Checks {
  return { database: coherence.isCoherent(), signing_keys: signing.hasActive };
}

async function readCertificate({ certFile, keyFile }: NonNullable<Config["tls"]>) {
  const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
  return { cert, key };
}

/** Signing keys are read again when the database says so, and now and then in case it could not. */
function startBackgroundWork(
  { coherence }: Resources,
  signing: Signing,
  lastUsed: LastUsed,
  logger: FastifyBaseLogger,
  failures: Record<Task, number>,
) {
  const logged = (task: Task, what: string, work: () => Promise<void>) => () =>
    work().catch((err) => {
      failures[task]++;
      logger.warn({ err }, what);
    });
  const reload = logged("signing_keys", "signing keys could not be read again", signing.reload);
  const flush = logged("last_used", "last used times could not be written", lastUsed.flush);
  coherence.onSigningKeys(reload);
  const timers = [setInterval(reload, SIGNING_KEYS_INTERVAL), setInterval(flush, LAST_USED_INTERVAL)];
  return async () => {
    for (const timer of timers) clearInterval(timer);
    await flush();
  };
}
