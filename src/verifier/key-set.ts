import { createLocalJWKSet, errors, type JSONWebKeySet, type JWSHeaderParameters } from "jose";
import type { Monotonic } from "../lib/clock.ts";
import { freshnessLifetime } from "./cache-control.ts";

export interface KeySetOptions {
  readonly url: string;
  readonly fetch: typeof globalThis.fetch;
  readonly monotonic: Monotonic;
  /** Timeout of a read in milliseconds. */
  readonly timeoutMs: number;
  /** Minimum milliseconds between reads, successful or not. */
  readonly cooldownMs: number;
  /** How long expired keys remain usable while they cannot be read again, in milliseconds. */
  readonly maxStalenessMs: number;
}

/** Thrown when the signing keys could not be read, so that a token can be neither accepted nor rejected. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

interface Keys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly kids: ReadonlySet<unknown>;
  readonly etag: string | null;
  /** In terms of `monotonic`. */
  readonly freshUntil: number;
}

/** Freshness in milliseconds of a response without `Cache-Control`. */
const DEFAULT_LIFETIME = 300_000;

/**
 * The public keys of a JWKS (RFC 7517), read on first use, when they expire (`Cache-Control`) and for an unknown `kid`. jose's remote set
 * does not use stale keys while the server is unreachable, reads again for every token after a failure, and ignores `Cache-Control` and
 * `ETag`.
 */
export class KeySet {
  readonly #options: KeySetOptions;
  #keys: Keys | undefined;
  #reading: Promise<void> | undefined;
  #lastRead = Number.NEGATIVE_INFINITY;
  /** The error of the last read; undefined if it succeeded. */
  #failure: unknown;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** Returns the key of a token. Rejects with `KeysUnavailable`, or with an error of jose if the key does not exist. */
  readonly find = async (header: JWSHeaderParameters): Promise<CryptoKey> => {
    if (typeof header.kid !== "string") throw new errors.JWSInvalid("the token names no key");
    await this.#refresh();
    if (!this.#usable()?.kids.has(header.kid)) await this.#read();
    const keys = this.#usable();
    // After a failed read, an unknown kid may belong to a new key.
    const isUnsure = keys === undefined || (this.#failure !== undefined && !keys.kids.has(header.kid));
    if (isUnsure) throw new KeysUnavailable("the signing keys cannot be read", { cause: this.#failure });
    return keys.find(header);
  };

  #usable(): Keys | undefined {
    const { monotonic, maxStalenessMs } = this.#options;
    return this.#keys !== undefined && monotonic() < this.#keys.freshUntil + maxStalenessMs ? this.#keys : undefined;
  }

  /** While the server is unreachable, callers get the stale keys without waiting for the read. */
  async #refresh(): Promise<void> {
    if (this.#keys !== undefined && this.#options.monotonic() < this.#keys.freshUntil) return;
    const reading = this.#read();
    if (this.#failure === undefined || this.#usable() === undefined) await reading;
  }

  /** Reads the keys. Concurrent calls share one read; during the cool-down it is a no-op. Never rejects. */
  #read(): Promise<void> {
    const { monotonic, cooldownMs } = this.#options;
    if (this.#reading === undefined && monotonic() - this.#lastRead < cooldownMs) return Promise.resolve();
    this.#reading ??= this.#fetch()
      .then(
        (keys) => {
          this.#keys = keys;
          this.#failure = undefined;
        },
        (error: unknown) => {
          this.#failure = error ?? new Error("no reason given");
        },
      )
      .finally(() => {
        this.#lastRead = monotonic();
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #fetch(): Promise<Keys> {
    const { url, fetch, timeoutMs, monotonic } = this.#options;
    const started = monotonic();
    const known = this.#keys;
    const headers = { accept: "application/json", ...(known?.etag && { "if-none-match": known.etag }) };
    const response = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(timeoutMs) });
    const freshUntil = started + (freshnessLifetime(response.headers) ?? DEFAULT_LIFETIME);
    if (response.status === 304 && known !== undefined) return { ...known, freshUntil };
    if (response.status === 200)
      return { ...toKeys(await response.json()), etag: response.headers.get("etag"), freshUntil };
    await response.body?.cancel();
    throw new Error(`${url} answered ${response.status}`);
  }
}

/** Throws if the document is not a JWK Set. */
function toKeys(document: unknown): Pick<Keys, "find" | "kids"> {
  const find = createLocalJWKSet(document as JSONWebKeySet);
  return { find, kids: new Set(find.jwks().keys.map(({ kid }) => kid)) };
}
