import { createFindByHash, findSlowDigests } from "../hashing/find-by-hash.ts";
import { createHashFormats } from "../hashing/hash-formats.ts";
import { createSlowHashes } from "../hashing/slow/slow-hashes.ts";
import type { HashRegistry } from "../keys/ports.ts";
import type { Clock } from "../lib/clock.ts";
import type { Random } from "../lib/random.ts";
import type { Commit } from "../postgres/cluster/change-committer.ts";
import type { Database } from "../postgres/connection/pool.ts";
import { createHashSchemeStore } from "../postgres/hashes/hash-scheme-store.ts";
import { createHmacKeyStore } from "../postgres/hashes/hmac-key-store.ts";
import type { FindKeysOf } from "../verify/reader.ts";
import type { Coherence } from "./coherence.ts";
import type { Rings } from "./root-secrets/rings.ts";

export interface HashingOptions {
  readonly databases: Readonly<Record<"database" | "lists" | "reads", Database>>;
  readonly commit: Commit;
  readonly rings: Rings;
  readonly coherence: Coherence;
  readonly clock: Clock;
  readonly random: Random;
  readonly findAll: FindKeysOf;
  /** Called once for each scheme that cannot be unwrapped. */
  readonly onUnusable: (schemeId: number, error: unknown) => void;
}

/** Returns what finds and adopts keys that were imported by a hash, and manages their hash formats. */
export function createHashing(options: HashingOptions) {
  const { databases, commit, rings, coherence, clock, random, findAll, onUnusable } = options;
  const ring = rings.hashSchemeWrap;
  const store = createHashSchemeStore(databases, coherence.membership);
  const formats = createHashFormats({
    ...{ store, ring, random, onUnusable },
    version: () => (coherence.isCoherent() ? coherence.hashSchemesVersion : null),
    renewed: () => coherence.membership.renewed(),
  });
  const slow = createSlowHashes({ ring: rings.digest, random });
  const finder = { ring: rings.digest, formats, slow };
  const registry: HashRegistry = {
    ...formats,
    requireSupported: (hash) => slow.assertSupported(hash),
    slowDigests: (rawKeys) => findSlowDigests(finder, rawKeys, (lookup) => findAll(lookup, "no-store")),
  };
  return {
    formats,
    slow,
    findByHash: createFindByHash(finder),
    registry,
    hmacKeys: { store: createHmacKeyStore(databases, commit), ring, clock, random },
    rewrap: { store, ring, random },
    /** Removes the schemes and prefix lengths that no key has. */
    removeUnused: store.removeUnused,
  };
}
