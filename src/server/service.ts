import { totalmem } from "node:os";
import type { FastifyBaseLogger } from "fastify";
import { auditTiles } from "../api/audit-tiles.ts";
import { introspectBy } from "../api/introspection.ts";
import { implementRpcs, implementStreams } from "../api/v2alpha1/rpcs.ts";
import { createTreeKey } from "../audit/tree/tree.ts";
import type { VerifyToken } from "../auth/authenticators.ts";
import { ChangeLimits } from "../auth/change-limits.ts";
import type { Principal } from "../domain/principal.ts";
import type { Charge } from "../domain/rate-limit.ts";
import type { Valid } from "../domain/verdict.ts";
import { createAdopter } from "../hashing/adopter.ts";
import { systemMonotonic } from "../lib/clock.ts";
import { createSource } from "../observability/metrics/source.ts";
import type { Tracing } from "../observability/tracing.ts";
import { findExpiringTokens } from "../postgres/keys/expiring-tokens.ts";
import { createLastUsedStore } from "../postgres/keys/verification-store.ts";
import { recordRootSecretUse } from "../postgres/signing/root-secret-use.ts";
import { createSigning, type Signing } from "../signing/signing.ts";
import { uncounted } from "../transport/pipeline/access-log.ts";
import { requestPolicy } from "../transport/pipeline/host-check.ts";
import type { ServerOptions } from "../transport/server.ts";
import type { Checks } from "../transport/services/health.ts";
import { BodyBudget } from "../transport/wire/request-body.ts";
import { recentCredentials } from "../verify/cache/recent-credentials.ts";
import { ADDRESS_FORMS, createLastUsed, type LastUsed } from "../verify/last-used.ts";
import { verify } from "../verify/verify.ts";
import { verifyVersion } from "../verify/version.ts";
import { createApi, createVerifyContext, reserved, strictly } from "./api.ts";
import { createAuditFeed, startAuditJob, startExpiryJob } from "./audit.ts";
import { configuredGuard } from "./authentication.ts";
import type { Config } from "./config/config.ts";
import { configuredConsole, configuredFiles } from "./console.ts";
import { gatewayOptions } from "./gateways.ts";
import { createJobs, type Jobs } from "./jobs.ts";
import { createKeyPages } from "./key-pages.ts";
import { RateLimits } from "./limits.ts";
import { Instruments, metricsOf } from "./metrics.ts";
import { createOwnLimiters } from "./own-limits.ts";
import { openPorts } from "./ports.ts";
import { createReadProbe } from "./read-probe.ts";
import type { Resources } from "./resources.ts";
import { createUsage, startUsageJob } from "./usage.ts";
import { startWebhooks, webhooksContext } from "./webhooks.ts";

export type Service = Awaited<ReturnType<typeof serve>>;

/** Options that are not in the configuration. */
export interface ServeOptions extends Pick<ServerOptions, "workers" | "drainDelay"> {
  /** Labels of all metrics, such as the number of a worker. */
  readonly metricLabels?: Readonly<Record<string, string>>;
  readonly tracing?: Tracing | undefined;
  /** Returns the number of uncaught exceptions for the metrics; without it another process counts them. */
  readonly uncaught?: () => number;
}

/**
 * Serves the configuration with open resources, which it closes when it stops or throws. `close` stops accepting connections, finishes calls
 * in flight, and closes the database.
 */
export async function serve(
  config: Config,
  resources: Resources,
  logger: FastifyBaseLogger,
  { metricLabels, tracing, uncaught, ...options }: ServeOptions,
) {
  await using onFailure = new AsyncDisposableStack();
  onFailure.defer(resources.close);
  const ownLimiters = createOwnLimiters(config, resources.coherence.membership);
  const meters = new Instruments(ownLimiters);
  /** Without a port for metrics, no call counts anything. */
  const isCounting = config.metrics !== null;
  const onUnusable = (kid: string) =>
    logger.warn({ kid }, "a retired signing key cannot be unwrapped: its tokens are rejected");
  const onLost = () => resources.reader.clear();
  await resources.coherence.membership.join();
  const signing = await createSigning({ ...resources.signing, onUnusable, onLost });
  compareAlgorithm(config, signing, logger);
  // Reports keys that cannot be unwrapped. Verification reads changed keys again.
  await resources.hashing.formats.reload();
  await recordRootSecretUse(resources.database, resources.rings.digest.current.id);
  await createTreeKey(resources.auditTree);
  const addressOf = ADDRESS_FORMS[config.lastUsedAddress];
  const lastUsed = createLastUsed(createLastUsedStore(resources.database), resources.keys.clock, addressOf);
  const adopter = createAdopter({
    store: resources.storeAdoption,
    clock: resources.keys.clock,
    onOutcome: meters.onAdoption,
    onFailure: (keyId, err) => logger.warn({ err, key_id: keyId }, "a key stored only as a hash could not be adopted"),
  });
  const context = createVerifyContext(config, resources, signing, lastUsed, adopter, logger);
  const rateLimits = new RateLimits(resources, ownLimiters.changes, meters.limitEvents.onExceeded, logger);
  const counted = {
    ...context,
    failures: meters.failures,
    charge: (key: Valid, charges?: readonly Charge[]) => rateLimits.limiter.charge(key, charges),
    onVerdict: isCounting ? meters.onVerdict : () => {},
    onStale: staleVerdicts(config, resources, meters, logger),
  };
  let isStopping = false;
  const feed = createAuditFeed(resources);
  let runWebhooks = () => {};
  const usage = createUsage(config, resources);
  const changeLimits = new ChangeLimits(ownLimiters.changes, rateLimits.chargeOwner, meters.ownLimits);
  const server = {
    admitChange: changeLimits.admit,
    auditFeed: feed,
    webhooks: webhooksContext(config, resources, () => runWebhooks()),
    onDenied: (caller: Principal) => meters.denials.add(caller, "NOT_PERMITTED"),
    isStopping: () => isStopping,
  };
  const files = await configuredFiles(config, logger);
  const keyPages = createKeyPages(config, resources, files);
  const api = createApi(config, resources, signing, counted, { ...server, keyPages: keyPages.context }, usage?.counter);
  const { isCoherent } = resources.coherence;
  const reads = createReadProbe({
    run: resources.probeReads,
    monotonic: systemMonotonic,
    patience: config.leaseTtl,
    onFailure: (err) => logger.error({ err }, "the server is not ready: it cannot read keys for verification"),
  });
  const checkReadiness = async (): Promise<Checks> => {
    const database = !isStopping && isCoherent() && (await reads.check());
    return { database: database && !isStopping, signing_keys: signing.activeAlgorithm !== null && !isStopping };
  };
  const strict = reserved(strictly(context), resources.reader);
  // Authenticating a caller is not counted as a verdict.
  const callers = { ...strict, credentials: strict.credentials && recentCredentials(strict.credentials, MAX_CALLERS) };
  const verifyToken: VerifyToken = (credential, presentation) => verify(callers, credential, "default", presentation);
  const guard = await configuredGuard(config, resources, verifyToken, meters.limits, {
    open: (sealed) => keyPages.sessions.open(sealed),
    verifyVersion: (keyId, version) => verifyVersion(callers, keyId, version),
  });
  const ports = await openPorts(config, {
    implementations: implementRpcs(api),
    streams: implementStreams(api),
    introspect: introspectBy(api),
    readTree: auditTiles(api),
    gateways: gatewayOptions(config, api, guard, meters),
    guard,
    checkReadiness,
    counters: isCounting ? meters.calls : uncounted,
    limiter: meters.limiter,
    tracing,
    logger,
    corsOrigins: config.corsOrigins,
    requestPolicy: requestPolicy(config),
    console: await configuredConsole(config, resources, guard, files),
    keyPage: keyPages.page(guard),
    fastPath: config.fastPath,
    logVerifications: config.logVerifications,
    bodyBudget: new BodyBudget(config.requestBufferBytes ?? defaultRequestBuffer(options.workers?.().configured)),
    ...options,
  });
  const jobs = startJobs(config, resources, signing, lastUsed, meters, logger);
  rateLimits.start(jobs, () => isStopping);
  const webhooks = startWebhooks(jobs, config, resources, meters, logger);
  runWebhooks = webhooks.run;
  startUsageJob(jobs, usage);
  startAuditJob(jobs, feed, resources, meters, webhooks.run);
  const stopJobs = async () => void (await Promise.all([webhooks.stop(), jobs.stop()]));
  onFailure.defer(stopJobs);
  const close = async () => {
    isStopping = true;
    // Keeps the lease until the calls in flight have ended, and acknowledges barriers meanwhile, so that no change waits for this node.
    await ports.close();
    await adopter.stop();
    await resources.coherence.membership.leave();
    await stopJobs();
    await resources.close();
    // An unreachable collector must not keep the server from stopping.
    await tracing?.close().catch((err) => logger.warn({ err }, "the last trace spans could not be exported"));
  };
  const { url, gatewayUrl } = ports;
  const isReady = () => {
    // Keeps a value for the next scrape, which must not wait for the database.
    void checkReadiness();
    return !isStopping && isCoherent() && reads.works() && signing.activeAlgorithm !== null;
  };
  const measured = {
    resources,
    feed,
    signing,
    lastUsed,
    rateLimits,
    usage,
    isReady,
    leaseTtl: config.leaseTtl,
    meters,
    jobs,
    uncaught,
  };
  const metrics = createSource(metricsOf(measured), metricLabels);
  // From here on, `close` stops what was opened.
  onFailure.move();
  return { url, gatewayUrl, metrics, close };
}

/** Maximum number of callers whose identities are kept as objects. */
const MAX_CALLERS = 1_000;

/** The setting applies to new keys only. */
function compareAlgorithm({ signingAlgorithm }: Config, { activeAlgorithm }: Signing, logger: FastifyBaseLogger): void {
  if (signingAlgorithm === null || signingAlgorithm === activeAlgorithm) return;
  const remedy = `run \`keyhold signing-keys rotate --algorithm ${signingAlgorithm}\``;
  const message = `the algorithm of the active signing key differs from KEYHOLD_SIGNING_ALGORITHM: ${remedy}`;
  logger.warn({ configured: signingAlgorithm, active: activeAlgorithm }, message);
}

const MIB = 2 ** 20;

/** Returns the part of one process in an eighth of the available memory: from 32 to 256 MiB. */
function defaultRequestBuffer(processes = 1): number {
  const available = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  return Math.min(Math.max(available / 8 / processes, 32 * MIB), 256 * MIB);
}

/** Counts stale verdicts, and logs the first one after each lease. */
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
    const message =
      "the database is unreachable: cached verdicts are returned, marked as stale, until KEYHOLD_STALE_GRACE ends";
    logger.warn({ stale_grace_ms: staleGrace }, message);
  };
}

function startJobs(
  { expiryWarnings }: Config,
  resources: Resources,
  signing: Signing,
  lastUsed: LastUsed,
  meters: Instruments,
  log: FastifyBaseLogger,
): Jobs {
  const { coherence, database, keys, hashing } = resources;
  const { clock } = keys;
  const jobs = createJobs({ clock, monotonic: systemMonotonic, log });
  const reloadSigningKeys = jobs.start({
    name: "signing_keys",
    interval: 30_000,
    failureMessage: "signing keys could not be reloaded",
    run: signing.reload,
  });
  // Notifications come at once; the interval is for changes whose notification was missed.
  coherence.onSigningKeys = reloadSigningKeys;
  jobs.start({
    name: "last_used",
    interval: 5_000,
    failureMessage: "the last_used_time of keys could not be written",
    runsAtStop: true,
    run: lastUsed.flush,
  });
  jobs.start({
    name: "hash_schemes",
    interval: 60_000,
    failureMessage: "unused hash formats could not be removed",
    run: async () => void (await hashing.removeUnused()),
  });
  startExpiryJob(jobs, expiryWarnings, resources, meters);
  const readAdminTokens = jobs.start({
    name: "admin_tokens",
    interval: 600_000,
    failureMessage: "the check for expiring admin tokens failed",
    run: async () => {
      const now = new Date(clock.now());
      const tokens = await findExpiringTokens(database, now);
      const expired = tokens.filter(({ expireTime }) => expireTime <= now).length;
      meters.expiringTokens = { expiring: tokens.length - expired, expired };
    },
  });
  readAdminTokens();
  return jobs;
}
