import { hash } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import type { Identified, IdentityCache } from "../identified.ts";
import { decodeIdentified, encodeIdentified } from "./credential-codec.ts";
import type { ByteCacheOptions } from "./store/byte-cache.ts";
import { type Codec, TwoTierCache } from "./two-tier-cache.ts";

const CODEC: Codec<Identified> = {
  writeKey: (name, into) => into.write(name, 0, "latin1"),
  encode: encodeIdentified,
  decode: (_name, bytes) => decodeIdentified(bytes),
};

/**
 * Caches identified credentials by the SHA-256 of their text, which itself is not stored. An entry is valid as long as the key rings of this
 * process, except for the expiry of a token, which is therefore checked on each use.
 */
export class CredentialCache implements IdentityCache {
  readonly #cache: TwoTierCache<Identified>;
  readonly #clock: Clock;
  #generation = 0;

  constructor(clock: Clock, options: ByteCacheOptions) {
    this.#cache = new TwoTierCache(CODEC, options);
    this.#clock = clock;
  }

  get generation(): number {
    return this.#generation;
  }

  get cold() {
    return this.#cache.cold;
  }

  /** Returns a string, the fastest type to hash into and look up by. */
  nameOf(credential: string): string {
    return hash("sha256", credential, "latin1");
  }

  get(name: string): Identified | undefined {
    const identified = this.#cache.get(name);
    if (identified === undefined || identified.token === null) return identified;
    if (identified.token.expireTime > this.#clock.now()) return identified;
    this.#cache.delete(name);
    return undefined;
  }

  set(name: string, identified: Identified, generation: number): void {
    if (generation === this.#generation) this.#cache.set(name, identified);
  }

  clear(): void {
    this.#cache.clear();
    this.#generation++;
  }
}
