import { randomBytes } from "node:crypto";
import type { Sql } from "postgres";
import type { Change } from "../../src/domain/change.ts";
import { newId } from "../../src/domain/key.ts";
import type { HashAlgorithm, RawKeyHash } from "../../src/domain/raw-key-hash.ts";
import { createAdopter } from "../../src/hashing/adopter.ts";
import { createFindByHash, type FindByHash } from "../../src/hashing/find-by-hash.ts";
import type { NewKey } from "../../src/keys/ports.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { createApi, createVerifyContext } from "../../src/server/api.ts";
import { createAuditFeed } from "../../src/server/audit.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { createKeyPages } from "../../src/server/key-pages.ts";
import { openResources, type Resources } from "../../src/server/resources.ts";
import { webhooksContext } from "../../src/server/webhooks.ts";
import { createSigning } from "../../src/signing/signing.ts";
import { operator } from "./principal.ts";
import { ROOT_SECRET } from "./server.ts";
import { FAST, FAST_WITH_PREFIX, PREFIX_LENGTH, SLOW, TestHashes } from "./test-hashes.ts";

/** A node of a cluster, without a port, that recognizes the keys of `TestHashes`. */
export type HashNode = Awaited<ReturnType<typeof openHashNode>>;

export async function openHashNode(databaseUrl: string, environment: Record<string, string> = {}) {
  return openNode(databaseUrl, environment, async ({ database, rings: { digest: ring } }) => {
    await database.run(addSchemes);
    const hashes = new TestHashes(ring);
    return { hashes, findByHash: createFindByHash({ ring, formats: hashes, slow: hashes }) };
  });
}

/** The same with the hashes of servers. */
export type RealNode = Awaited<ReturnType<typeof openRealNode>>;

export function openRealNode(databaseUrl: string, environment: Record<string, string> = {}) {
  return openNode(databaseUrl, environment, async ({ hashing: { findByHash } }) => ({ hashes: null, findByHash }));
}

async function openNode<H extends TestHashes | null>(
  databaseUrl: string,
  environment: Record<string, string>,
  finderOf: (resources: Resources) => Promise<{ readonly hashes: H; readonly findByHash: FindByHash }>,
) {
  const changes: Change[] = [];
  const config = toConfig({
    ...{
      KEYHOLD_DATABASE_URL: databaseUrl,
      KEYHOLD_ROOT_SECRET: ROOT_SECRET,
      KEYHOLD_CACHE_SIZE: "16",
      KEYHOLD_LEASE_TTL: "15s",
    },
    ...environment,
  });
  const resources = await openResources(config, { log: () => {}, onChanges: (seen) => changes.push(...seen) });
  await resources.coherence.membership.join();
  const signing = await createSigning({ ...resources.signing, onLost: () => resources.reader.clear() });
  const { hashes, findByHash } = await finderOf(resources);
  const outcomes = { adopted: 0, already: 0, failed: 0 };
  const failures: unknown[] = [];
  let skew = 0;
  const stored: Promise<unknown>[] = [];
  const adopter = createAdopter({
    store: (adoption, caller) => {
      const outcome = resources.storeAdoption(adoption, caller);
      stored.push(outcome);
      return outcome;
    },
    clock: { now: () => Date.now() + skew },
    onOutcome: (outcome) => outcomes[outcome]++,
    onFailure: (_keyId, error) => failures.push(error),
  });
  const lastUsed = { note: () => true, size: 0, flush: async () => {} };
  const log = { error: (...fault: unknown[]) => failures.push(fault) };
  const hashing = { ...resources.hashing, findByHash };
  const context = createVerifyContext(config, { ...resources, hashing }, signing, lastUsed, adopter, log);
  const webhooks = webhooksContext(config, resources, () => {});
  const server = {
    auditFeed: createAuditFeed(resources),
    webhooks,
    keyPages: createKeyPages(config, resources, null).context,
    onDenied: () => {},
    admitChange: () => {},
    isStopping: () => false,
  };
  const api = createApi(config, resources, signing, context, server);
  return {
    ...{ resources, hashes, adopter, api, changes, outcomes, failures },
    keys: resources.keys,
    /** Lets time pass for adoptions. */
    wait: (milliseconds: number) => {
      skew += milliseconds;
    },
    /** Resolves when every adoption so far has ended. */
    idle: async () => {
      for (const outcome of stored) await outcome.catch(() => {});
    },
    adoptions: () => changes.filter(({ verb }) => verb === "adopt"),
    close: async () => {
      await adopter.stop();
      await resources.coherence.membership.leave();
      await resources.close();
    },
  };
}

/** Stores the schemes of `TestHashes`. */
async function addSchemes(sql: Sql): Promise<void> {
  for (const { schemeId, algorithm } of [FAST, FAST_WITH_PREFIX, SLOW]) {
    const slot = algorithm === "SCRYPT" ? 9 : schemeId;
    await sql`
      INSERT INTO hash_schemes (scheme_id, slot, algorithm) VALUES (${schemeId}, ${slot}, ${algorithm})
      ON CONFLICT DO NOTHING`;
  }
  await sql`INSERT INTO hash_prefix_lengths (length, slot) VALUES (${PREFIX_LENGTH}, 1) ON CONFLICT DO NOTHING`;
}

export interface HashedKeyFields {
  readonly actorId?: string;
  readonly expireTime?: Date;
  /** Then `expireTime` is that of the adopted key. */
  readonly adoptBeforeTime?: Date;
}

/** Returns a key to insert of which only a hash is known, made by a node. */
export function hashedKey(
  { hashes, resources }: HashNode,
  kind: "fast" | "slow",
  rawKey: string,
  { actorId = "actor_1", expireTime, adoptBeforeTime }: HashedKeyFields = {},
): NewKey {
  const now = new Date();
  const { algorithm, hash, digests, lookup } = hashOf(hashes, kind, rawKey);
  const [digest, ...others] = digests;
  if (digest === undefined) throw new Error("the ring is empty");
  const key = {
    ...{ keyId: newId(now.getTime(), systemRandom), kind: "imported" as const, name: "hashed", actorId },
    ...{ scopes: ["read"], metadata: {}, hint: "", createTime: now, updateTime: now, lastUsedTime: null },
    ...{ lastUsedAddress: null, previousSecrets: [] },
    ...{ rotateTime: null, revokeTime: null, revocationReason: null, revocationDescription: null },
    ...{
      disableTime: null,
      disableReason: null,
      allowedCidrs: null,
      restrictedToActorIds: null,
      rateLimits: null,
      quotas: null,
      createdBy: null,
    },
    ...{ revokedBy: null, disabledBy: null },
    ...{ hashAlgorithm: algorithm, adoptTime: null, adoptBeforeTime: adoptBeforeTime ?? null },
    expireTime: adoptBeforeTime ?? expireTime ?? null,
  };
  return {
    ...{ key, digest, request: null, principal: operator },
    hash: { ...hash, lookup, adoptedExpireTime: adoptBeforeTime === undefined ? null : (expireTime ?? null) },
    otherDigests: others.filter(({ keyId }) => resources.rings.digest.find(keyId) !== undefined),
  };
}

function hashOf(hashes: TestHashes, kind: "fast" | "slow", rawKey: string) {
  if (kind === "fast") {
    const hash: RawKeyHash = { schemeId: FAST.schemeId, parameters: null };
    const digests = hashes.fastDigests(rawKey, FAST);
    return { algorithm: "SHA256" as HashAlgorithm, hash, digests, lookup: null };
  }
  const parameters = randomBytes(8).toString("hex");
  return {
    algorithm: "SCRYPT" as HashAlgorithm,
    hash: { schemeId: SLOW.schemeId, parameters } satisfies RawKeyHash,
    digests: hashes.slowDigests(rawKey, parameters),
    lookup: { length: PREFIX_LENGTH, digests: hashes.prefixDigests(rawKey, PREFIX_LENGTH) },
  };
}
