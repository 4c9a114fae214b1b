import type { SecretPrefix } from "../credential/format.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Clock } from "../lib/clock.ts";
import type { Random } from "../lib/random.ts";
import type { KeyStore } from "./store.ts";

/** What the verbs of this folder work with. */
export interface KeysContext {
  readonly store: KeyStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly secretPrefix: SecretPrefix;
  /** Server keys by use; see `domain/server-keys.ts`. */
  readonly rings: {
    readonly tag: KeyRing;
    readonly digest: KeyRing;
    readonly fingerprint: KeyRing;
    readonly pageToken: KeyRing;
  };
  /** Whether a raw key has the shape of a secret or token of ours, and so may not be imported. */
  looksLikeOurs(rawKey: string): boolean;
}
