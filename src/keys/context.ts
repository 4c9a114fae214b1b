import type { SecretPrefix } from "../credential/format.ts";
import type { Lifetimes } from "../domain/expiry.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Clock } from "../lib/clock.ts";
import type { Random } from "../lib/random.ts";
import type { BulkStore } from "./bulk-store.ts";
import type { DescendantStore } from "./descendants.ts";
import type { HashRegistry } from "./hash-registry.ts";
import type { KeyStore } from "./store.ts";

/** The dependencies of the verbs in this folder. */
export interface KeysContext {
  readonly store: KeyStore;
  readonly bulk: BulkStore;
  readonly descendants: DescendantStore;
  readonly hashes: HashRegistry;
  readonly clock: Clock;
  readonly random: Random;
  readonly secretPrefix: SecretPrefix;
  readonly lifetimes: Lifetimes;
  /** Server keys by purpose (`domain/server-keys.ts`). */
  readonly rings: {
    readonly tag: KeyRing;
    readonly digest: KeyRing;
    readonly fingerprint: KeyRing;
    readonly pageToken: KeyRing;
  };
  /** Returns whether a raw key has the shape of a credential issued by Keyhold, and so may not be imported. */
  looksLikeOurs(rawKey: string): boolean;
}
