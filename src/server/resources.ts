import type { ActorsContext } from "../actors/actors.ts";
import { storedEventJson } from "../api/v2alpha1/audit.ts";
import type { AuditContext } from "../audit/log.ts";
import type { TreeContext } from "../audit/tree/tree.ts";
import type { MembershipLog } from "../cluster/membership.ts";
import { type CredentialShapes, looksLikeOurs } from "../credential/kinds.ts";
import type { ChangeObserver } from "../domain/change.ts";
import type { KeysContext } from "../keys/ports.ts";
import { systemClock } from "../lib/clock.ts";
import { pooledRandom, systemRandom } from "../lib/random.ts";
import type { Tracing } from "../observability/tracing.ts";
import { createAuditStore } from "../postgres/audit/audit-store.ts";
import { createTreeStore } from "../postgres/audit/tree-store.ts";
import { createBulkStore } from "../postgres/bulk-store.ts";
import { type Commit, invalidating, observed, propagating } from "../postgres/cluster/change-committer.ts";
import { ConnectBackoff } from "../postgres/connection/connect-backoff.ts";
import { traced, withCircuitBreaker } from "../postgres/connection/database-decorators.ts";
import { type Database, Pool } from "../postgres/connection/pool.ts";
import { createAdoptionStore } from "../postgres/hashes/adoption.ts";
import { createKeyStore } from "../postgres/key-store.ts";
import { createFindKeys } from "../postgres/keys/verification-store.ts";
import { createActorStore } from "../postgres/limits/actor-store.ts";
import { createBucketStore } from "../postgres/limits/bucket-store.ts";
import { createSigningKeyStore } from "../postgres/signing/signing-key-store.ts";
import { createUsageReader } from "../postgres/usage/usage-reader.ts";
import { createUsageStore } from "../postgres/usage/usage-store.ts";
import { createEndpointStore } from "../postgres/webhooks/endpoint-store.ts";
import { createQueueStore } from "../postgres/webhooks/queue-store.ts";
import type { SigningContext } from "../signing/signing.ts";
import { looksLikeJwt } from "../token/jwt/compact.ts";
import { looksLikeMacaroon } from "../token/macaroon/text.ts";
import { type CacheOptions, VerificationCache } from "../verify/cache/cache.ts";
import { type OnDuplicates, reportingDuplicates } from "../verify/cache/duplicates.ts";
import { Coherence } from "./coherence.ts";
import type { Config } from "./config/config.ts";
import { type EmbeddedStart, openDatabaseServer } from "./database-server.ts";
import { createHashing, type HashingOptions } from "./hashing.ts";
import { loadRootSecrets } from "./root-secrets/file.ts";
import { deriveRings, type Rings } from "./root-secrets/rings.ts";

/** Connections for lists, in addition to those of the pool. */
const LIST_CONNECTIONS = 2;

/**
 * Connections for verification and for reads of single keys, one for each batch that may be in flight, so that neither waits behind
 * changes.
 */
const READ_CONNECTIONS = 4;

/** Connections for authentication, and for revoking and disabling single keys, while the others are in use. */
const RESERVED_CONNECTIONS = 2;

/** Resources that the server and the commands share: an open database with its schema, and the server keys. */
export type Resources = Awaited<ReturnType<typeof openResources>>;

export interface ResourcesOptions extends EmbeddedStart {
  readonly onMembership?: MembershipLog;
  /** Receives every committed change of keys: the seam for what follows from a change. */
  readonly onChanges?: ChangeObserver;
  /** Receives the ids of keys that share one raw key. */
  readonly onDuplicates?: OnDuplicates;
  /** Receives the id of each hash scheme that cannot be unwrapped, once. */
  readonly onUnusableScheme?: HashingOptions["onUnusable"];
  readonly tracing?: Tracing | undefined;
}

/** Opens the database and migrates its schema. Starts the embedded database if none is configured. */
export async function openResources(config: Config, options: ResourcesOptions) {
  const rings = deriveRings(await loadRootSecrets(config));
  const opened = await openDatabase(config, options);
  try {
    const migrated = await opened.prepareSchema();
    const log = options.onMembership ?? NOTHING;
    const coherence = new Coherence(config, opened.url, { onDisconnect: opened.disconnect, log });
    const { url, database: changes, lists, reads, reserve, audit, limits } = opened;
    const assembled = assemble(config, opened, rings, coherence, options);
    const close = async () => {
      await assembled.hashing.slow.close();
      await coherence.membership.close();
      await opened.close();
    };
    return {
      url,
      pools: { changes, lists, reads, reserve, audit, limits },
      migrated,
      ...assembled,
      close,
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function openDatabase(config: Config, embedded: EmbeddedStart) {
  const server = await openDatabaseServer(config, embedded);
  const options = { url: server.url, statementTimeout: 10_000, attempts: new ConnectBackoff() };
  // A separate URL for notifications means that the first one leads through a transaction pooler, which loses prepared statements.
  const prepare = config.databaseListenUrl === null;
  const database = new Pool({ ...options, maxConnections: config.databasePoolSize, prepare });
  const lists = new Pool({ ...options, maxConnections: LIST_CONNECTIONS, prepare: false });
  const reads = new Pool({ ...options, maxConnections: READ_CONNECTIONS, prepare });
  const reserve = new Pool({ ...options, maxConnections: RESERVED_CONNECTIONS, prepare });
  // The jobs of the audit log and of webhooks neither wait behind changes nor delay them.
  const audit = new Pool({ ...options, maxConnections: 1, prepare, applicationName: "keyhold audit" });
  // Grants of tokens, for which verifications wait, neither wait behind others nor delay them.
  const limits = new Pool({ ...options, maxConnections: 2, prepare, applicationName: "keyhold limits" });
  const pools = [database, lists, reads, reserve, audit, limits];
  const close = async () => {
    await Promise.all(pools.map((pool) => pool.close()));
    await server.stop();
  };
  const disconnect = (reason: Error) => {
    for (const pool of pools) pool.disconnect(reason);
  };
  const orReserve = (pool: Pool): Database => ({ run: (work) => (pool.isBusy ? reserve : pool).run(work) });
  const urgent = { urgentChanges: orReserve(database), urgentReads: orReserve(reads) };
  const { url, prepareSchema } = server;
  return { url, prepare, database, lists, reads, reserve, audit, limits, ...urgent, prepareSchema, disconnect, close };
}

type Databases = Readonly<
  Record<"database" | "lists" | "reads" | "audit" | "limits" | "urgentChanges" | "urgentReads", Database>
> & {
  readonly prepare: boolean;
};

const NOTHING = () => undefined;

function assemble(
  config: Config,
  databases: Databases,
  rings: Rings,
  coherence: Coherence,
  { tracing, onDuplicates = NOTHING, onChanges = NOTHING, onUnusableScheme = NOTHING }: ResourcesOptions,
) {
  const { secretPrefix, lifetimes } = config;
  const [clock, random] = [systemClock, pooledRandom(systemRandom)];
  const { membership, isCoherent } = coherence;
  const whyUnavailable = () => membership.unavailableReason;
  const renewed = () => membership.renewed();
  const open = (database: Database) => traced(withCircuitBreaker(database, whyUnavailable), tracing?.statement);
  const database = open(databases.database);
  const lists = open(databases.lists);
  const reads = open(databases.reads);
  const probeReads = () => createFindKeys(reads, membership)([{ keyId: null, digests: [new Uint8Array(32)] }]);
  const findKeysIn = (one: Database) => reportingDuplicates(createFindKeys(one, membership), onDuplicates);
  const options = cacheOptions(config, coherence, tracing);
  const reader = new VerificationCache(findKeysIn(reads), options, findKeysIn(open(databases.urgentReads)));
  coherence.cache = reader;
  const propagated = propagating(database, membership.propagation, databases.prepare);
  const urgent = propagating(open(databases.urgentChanges), membership.propagation, databases.prepare);
  const invalidated = (commit: Commit) => invalidating(commit, (change) => reader.invalidate(change));
  const ofKeys = (commit: Commit) =>
    observed(invalidated(commit), (changes) => {
      onChanges(changes);
      coherence.onAuditLog(null);
    });
  const changes = ofKeys(propagated);
  const hashing = createHashing({
    ...{ databases: { database, lists, reads }, commit: propagated, rings, coherence, clock, random },
    findAll: reader.findAll,
    onUnusable: onUnusableScheme,
  });
  const shapes: CredentialShapes = { prefix: secretPrefix, looksLikeJwt, looksLikeMacaroon };
  const keys: KeysContext = {
    store: createKeyStore({ lists, reads }, changes, ofKeys(urgent)),
    bulk: createBulkStore({ lists, reads }, changes, ofKeys(propagating(lists, membership.propagation)), renewed),
    hashes: hashing.registry,
    clock,
    random,
    secretPrefix,
    lifetimes,
    rings,
    looksLikeOurs: (rawKey) => looksLikeOurs(rawKey, shapes),
  };
  const signing: SigningContext = {
    store: createSigningKeyStore(database, propagated, membership),
    ring: rings.signingKeyWrap,
    algorithm: config.signingAlgorithm,
    clock,
    random,
    version: () => (isCoherent() ? coherence.signingKeysVersion : null),
    renewed,
  };
  const storeAdoption = createAdoptionStore(changes, clock);
  const auditDatabase = open(databases.audit);
  const audit: AuditContext = { store: createAuditStore({ database: auditDatabase, lists }), clock, rings };
  const auditTree: TreeContext = {
    store: createTreeStore(auditDatabase),
    events: audit.store,
    ring: rings.signingKeyWrap,
    random,
    toJson: storedEventJson,
  };
  const actors: ActorsContext = { store: createActorStore({ lists, reads }, invalidated(propagated)), clock, rings };
  const buckets = createBucketStore(open(databases.limits));
  const webhooks = { endpoints: createEndpointStore({ database, lists }), queue: createQueueStore(auditDatabase) };
  const usage = { store: createUsageStore(auditDatabase, membership), reader: createUsageReader(lists) };
  return {
    database,
    /** For lists and statements that scan a whole table: almost without prepared statements (`connect.ts`). */
    lists,
    /** Runs the statement with which keys are found for verification, past the cache. */
    probeReads,
    ...{
      rings,
      shapes,
      keys,
      reader,
      signing,
      coherence,
      hashing,
      storeAdoption,
      audit,
      auditTree,
      actors,
      buckets,
      webhooks,
      usage,
    },
  };
}

/** Bytes of cache per credential: most take 380 with one kind of answer, plus their place in the index, and a share for keys that tokens name. */
const CACHE_ENTRY_BYTES = 480;

function cacheOptions({ cacheBytes }: Config, coherence: Coherence, tracing: Tracing | undefined): CacheOptions {
  const { isCoherent, membership } = coherence;
  return {
    maxBytes: cacheBytes,
    maxEntries: Math.floor(cacheBytes / CACHE_ENTRY_BYTES),
    maxNegatives: 100_000,
    isCoherent,
    isInStaleGrace: () => membership.lease.isInStaleGrace,
    renewed: () => membership.renewed(),
    onLookup: tracing?.lookup,
  };
}
