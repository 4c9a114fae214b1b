import { createLocalJWKSet, errors, type JSONWebKeySet, type JWSHeaderParameters } from "jose";
import type { Monotonic } from "../lib/clock.ts";
import { freshnessLifetime } from "./cache-control.ts";

interface KeySetOptions {
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

export type FindKey = (header: JWSHeaderParameters) => Promise<CryptoKey>;

/**
 * Returns a function that finds the public key of a token in a JWKS (RFC 7517), which is read on first use, when it expires
 * (`Cache-Control`) and for an unknown `kid`. It rejects with `KeysUnavailable`, or with an error of jose if the key does not exist. jose's
 * remote set does not use stale keys while the server is unreachable, reads again for every token after a failure, and ignores
 * `Cache-Control` and `ETag`.
 */
export function createKeySet(options: KeySetOptions): FindKey {
  const { monotonic, cooldownMs, maxStalenessMs } = options;
  let keys: Keys | undefined;
  let reading: Promise<void> | undefined;
  let lastRead = Number.NEGATIVE_INFINITY;
  /** The error of the last read; undefined if it succeeded. */
  let failure: unknown;
  const usableKeys = () => (keys !== undefined && monotonic() < keys.freshUntil + maxStalenessMs ? keys : undefined);
  const fetchNow = async (): Promise<void> => {
    try {
      keys = await fetchKeys(options, keys);
      failure = undefined;
    } catch (error) {
      failure = error ?? new Error("no reason given");
    }
    lastRead = monotonic();
    reading = undefined;
  };
  /** Reads the keys. Concurrent calls share one read; during the cool-down it is a no-op. Never rejects. */
  const read = async (): Promise<void> => {
    if (reading === undefined && monotonic() - lastRead < cooldownMs) return;
    reading ??= fetchNow();
    await reading;
  };
  return async (header) => {
    if (typeof header.kid !== "string") throw new errors.JWSInvalid("the token has no kid");
    if (keys === undefined || monotonic() >= keys.freshUntil) {
      const fresh = read();
      // While the server is unreachable, callers get the stale keys without waiting for the read.
      if (failure === undefined || usableKeys() === undefined) await fresh;
    }
    if (!usableKeys()?.kids.has(header.kid)) await read();
    const usable = usableKeys();
    // After a failed read, an unknown kid may belong to a new key.
    const isUnsure = usable === undefined || (failure !== undefined && !usable.kids.has(header.kid));
    if (isUnsure) throw new KeysUnavailable("the signing keys cannot be read", { cause: failure });
    return usable.find(header);
  };
}

/** Reads the keys again unless they are still those of `cached` (`ETag`). */
async function fetchKeys({ url, fetch, timeoutMs, monotonic }: KeySetOptions, cached: Keys | undefined): Promise<Keys> {
  const started = monotonic();
  const headers = { accept: "application/json", ...(cached?.etag && { "if-none-match": cached.etag }) };
  const response = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(timeoutMs) });
  const freshUntil = started + (freshnessLifetime(response.headers) ?? DEFAULT_LIFETIME);
  if (response.status === 304 && cached !== undefined) return { ...cached, freshUntil };
  if (response.status === 200)
    return { ...toKeys(await response.json()), etag: response.headers.get("etag"), freshUntil };
  await response.body?.cancel();
  throw new Error(`${url} answered ${response.status}`);
}

/** Throws if the document is not a JWK Set. */
function toKeys(document: unknown): Pick<Keys, "find" | "kids"> {
  const find = createLocalJWKSet(document as JSONWebKeySet);
  return { find, kids: new Set(find.jwks().keys.map(({ kid }) => kid)) };
}
