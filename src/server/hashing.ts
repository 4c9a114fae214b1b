import { createHashSchemes, type HashSchemes } from "../hashing/hash-schemes.ts";
import type { HmacKeysContext } from "../hashing/hmac-keys.ts";
import type { RewrapContext } from "../hashing/rewrap.ts";
import { createSlowHashes, type SlowHashes } from "../hashing/slow/slow-hashes.ts";
import type { HashSchemeStore } from "../hashing/store.ts";
import type { HashRegistry } from "../keys/ports.ts";
import type { Clock } from "../lib/clock.ts";
import type { Random } from "../lib/random.ts";
import type { ChangeCommitter } from "../postgres/cluster/change-committer.ts";
import type { Database } from "../postgres/connection/pool.ts";
import { createHashSchemeStore } from "../postgres/hashes/hash-scheme-store.ts";
import { createHmacKeyStore } from "../postgres/hashes/hmac-key-store.ts";
import { createHashRecognition } from "../verify/by-hash/create-recognition.ts";
import type { HashRecognition } from "../verify/by-hash/recognition.ts";
import { findSlowDigests } from "../verify/by-hash/slow-digests.ts";
import type { FindCandidates } from "../verify/reader.ts";
import type { Coherence } from "./coherence.ts";
import type { Rings } from "./root-secrets/rings.ts";

/** Everything for keys of which only hashes are known. */
export interface Hashing {
  readonly schemes: HashSchemes;
  readonly slow: SlowHashes;
  readonly recognition: HashRecognition;
  readonly registry: HashRegistry;
  readonly hmacKeys: HmacKeysContext;
  readonly rewrap: RewrapContext;
  /** Removes the schemes and prefix lengths that no key has. */
  readonly removeUnused: HashSchemeStore["removeUnused"];
}

export interface HashingOptions {
  readonly databases: Readonly<Record<"database" | "lists" | "reads", Database>>;
  readonly changes: ChangeCommitter;
  readonly rings: Rings;
  readonly coherence: Coherence;
  readonly clock: Clock;
  readonly random: Random;
  readonly findCandidates: FindCandidates;
  /** Called once for each scheme that does not unwrap. */
  readonly onUnusable: (schemeId: number, error: unknown) => void;
}

export function createHashing(options: HashingOptions): Hashing {
  const { databases, changes, rings, coherence, clock, random, findCandidates, onUnusable } = options;
  const ring = rings.hashSchemeWrap;
  const store = createHashSchemeStore(databases, coherence.membership);
  const schemes = createHashSchemes({
    ...{ store, ring, random, onUnusable },
    version: () => (coherence.isCoherent() ? coherence.hashSchemesVersion : null),
    renewed: coherence.renewed,
  });
  const slow = createSlowHashes({ ring: rings.digest, random });
  const recognition = createHashRecognition({ ...schemes, ring: rings.digest, slow });
  return {
    schemes,
    slow,
    recognition,
    registry: {
      ...schemes,
      requireSupported: (hash) => slow.assertSupported(hash),
      slowDigests: (rawKeys) => findSlowDigests(rawKeys, recognition, findCandidates),
    },
    hmacKeys: { store: createHmacKeyStore(databases, changes), ring, clock, random },
    rewrap: { store, ring, random },
    removeUnused: store.removeUnused,
  };
}
