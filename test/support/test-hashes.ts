import { createHash } from "node:crypto";
import { KeyholdError } from "../../src/domain/errors.ts";
import type { KeySecret, SecretDigest } from "../../src/domain/key.ts";
import type { HashLookups, HashScheme } from "../../src/domain/raw-key-hash.ts";
import { hmacSha256, type KeyRing } from "../../src/domain/server-keys.ts";
import { fastDigests, prefixDigests } from "../../src/hashing/digest.ts";
import type { FinderContext } from "../../src/hashing/find-by-hash.ts";
import type { MaybePromise } from "../../src/lib/maybe-promise.ts";

export const FAST: HashScheme = {
  ...{ schemeId: 1, algorithm: "SHA256", prefix: "", suffix: "", hmacKeyId: null, hmacKey: null },
};
export const FAST_WITH_PREFIX: HashScheme = { ...FAST, schemeId: 2, prefix: "salt:" };
export const SLOW: HashScheme = { ...FAST, schemeId: 3, algorithm: "SCRYPT" };
export const PREFIX_LENGTH = 8;

type FormatsAndHashes = FinderContext["formats"] & FinderContext["slow"];

/** Hash formats: SHA-256, and a slow hash whose computation the test can hold and let fail. */
export class TestHashes implements FormatsAndHashes {
  current: HashLookups = { schemes: [FAST, FAST_WITH_PREFIX, SLOW], prefixLengths: [PREFIX_LENGTH] };
  /** The raw keys whose slow hashes were computed. */
  readonly computed: string[] = [];
  isOverloaded = false;
  readonly #ring: KeyRing;
  #held: PromiseWithResolvers<void> | null = null;
  #begun = Promise.withResolvers<void>();

  constructor(ring: KeyRing) {
    this.#ring = ring;
  }

  lookups(): MaybePromise<HashLookups> {
    return this.current;
  }

  lastLookups(): HashLookups {
    return this.current;
  }

  fastDigests(rawKey: string, scheme: HashScheme): readonly SecretDigest[] {
    return fastDigests(rawKey, scheme, this.#ring);
  }

  prefixDigests(rawKey: string, length: number): readonly SecretDigest[] {
    return prefixDigests(rawKey, length, this.#ring);
  }

  /** Under every server key, the current one first. */
  slowDigests(rawKey: string, parameters: string): readonly SecretDigest[] {
    const hash = createHash("sha256")
      .update(parameters + rawKey)
      .digest();
    return this.#ring.all.map((key) => ({ keyId: key.id, digest: hmacSha256(key, Buffer.of(0xfd), parameters, hash) }));
  }

  async matches(rawKey: string, _: HashScheme, { digest, hash }: KeySecret): Promise<boolean> {
    if (this.isOverloaded) throw new KeyholdError("OVERLOADED", "too many slow hashes");
    this.computed.push(rawKey);
    this.#begun.resolve();
    await this.#held?.promise;
    return this.slowDigests(rawKey, hash?.parameters ?? "").some(
      (one) => one.keyId === digest.keyId && Buffer.compare(one.digest, digest.digest) === 0,
    );
  }

  /** Holds every computation until the returned function is called. `begun` resolves when the first one is held. */
  hold(): { readonly begun: Promise<void>; readonly release: () => void } {
    const held = Promise.withResolvers<void>();
    [this.#held, this.#begun] = [held, Promise.withResolvers<void>()];
    return {
      begun: this.#begun.promise,
      release: () => {
        this.#held = null;
        held.resolve();
      },
    };
  }
}
