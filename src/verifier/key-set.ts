import { createLocalJWKSet, errors, type JSONWebKeySet, type JWSHeaderParameters } from "jose";
import type { Monotonic } from "../lib/clock.ts";
import { freshnessLifetime } from "./cache-control.ts";

export interface KeySetOptions {
  readonly url: string;
  readonly fetch: typeof globalThis.fetch;
  readonly monotonic: Monotonic;
  /** Milliseconds that one read may take. */
  readonly timeoutMs: number;
  /** Milliseconds after a read, good or bad, in which there is no other. */
  readonly cooldownMs: number;
  /** Milliseconds for which keys that should have been read again are used while they cannot be. */
  readonly maxStalenessMs: number;
}

/** The keys could not be read, so nothing can be said of a token. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

interface Keys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly kids: ReadonlySet<unknown>;
  readonly etag: string | null;
  /** By `monotonic`. */
  readonly freshUntil: number;
}

/** Milliseconds for which keys are fresh whose answer does not say. */
const DEFAULT_LIFETIME = 300_000;

/**
 * The public keys of a JWKS (RFC 7517), read when they are first asked for, again when `Cache-Control` says so, and again for an
 * unknown `kid`. jose's own remote set does not do for us: it does not use what it has while the server is away, reads again for every
 * token after a failure, and looks at neither `Cache-Control` nor `ETag`.
 */
export class KeySet {
  readonly #options: KeySetOptions;
  #keys: Keys | undefined;
  #reading: Promise<void> | undefined;
  #lastRead = Number.NEGATIVE_INFINITY;
  /** Of the last read; undefined if it was good. */
  #failure: unknown;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** The key that a token names. Rejects with `KeysUnavailable`, or with an error of jose if there is no such key. */
  readonly find = async (header: JWSHeaderParameters): Promise<CryptoKey> => {
    if (typeof header.kid !== "string") throw new errors.JWSInvalid("the token names no key");
    await this.#refresh();
    if (!this.#usable()?.kids.has(header.kid)) await this.#read();
    const keys = this.#usable();
    // A key that is unknown may be one that we could not hear of.
    const isUnsure = keys === undefined || (this.#failure !== undefined && !keys.kids.has(header.kid));
    if (isUnsure) throw new KeysUnavailable("the signing keys cannot be read", { cause: this.#failure });
    return keys.find(header);
  };

  #usable(): Keys | undefined {
    const { monotonic, maxStalenessMs } = this.#options;
    return this.#keys !== undefined && monotonic() < this.#keys.freshUntil + maxStalenessMs ? this.#keys : undefined;
  }

  /** While the server is away, callers have the old keys at once and do not wait for the attempt to read new ones. */
  async #refresh(): Promise<void> {
    if (this.#keys !== undefined && this.#options.monotonic() < this.#keys.freshUntil) return;
    const reading = this.#read();
    if (this.#failure === undefined || this.#usable() === undefined) await reading;
  }

  /** One read at a time, of which all have the result, and none within the cool-down. Never rejects. */
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
    const begin = monotonic();
    const known = this.#keys;
    const headers = { accept: "application/json", ...(known?.etag && { "if-none-match": known.etag }) };
    const response = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(timeoutMs) });
    const freshUntil = begin + (freshnessLifetime(response.headers) ?? DEFAULT_LIFETIME);
    if (response.status === 304 && known !== undefined) return { ...known, freshUntil };
    if (response.status === 200)
      return { ...toKeys(await response.json()), etag: response.headers.get("etag"), freshUntil };
    await response.body?.cancel();
    throw new Error(`${url} answered ${response.status}`);
  }
}

/** Throws if the document is no JWK Set. */
function toKeys(document: unknown): Pick<Keys, "find" | "kids"> {
  const find = createLocalJWKSet(document as JSONWebKeySet);
  return { find, kids: new Set(find.jwks().keys.map(({ kid }) => kid)) };
}
