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
    if (identified === undefined || !this.#isExpired(identified)) return identified;
    this.#cache.delete(name);
    return undefined;
  }

  /** Does not cache an expired token. */
  set(name: string, identified: Identified, generation: number): void {
    if (generation === this.#generation && !this.#isExpired(identified)) this.#cache.set(name, identified);
  }

  #isExpired({ token }: Identified): boolean {
    return token !== null && token.expireTime <= this.#clock.now();
  }

  clear(): void {
    this.#cache.clear();
    this.#generation++;
  }
}
