import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from "jose";
import type { Clock } from "../../lib/clock.ts";
import { isLoopbackHost } from "../../lib/host-names.ts";
import { memberOf } from "./claims.ts";

export type Fetch = typeof globalThis.fetch;

export interface IssuerOptions {
  /** The issuer identifier, exactly as in its tokens: an http or https URL without query and fragment. */
  readonly issuer: string;
  readonly clock: Clock;
  readonly fetch?: Fetch;
  /** Milliseconds after a failed read during which further reads fail immediately (circuit breaker); 5 s by default. */
  readonly retryPause?: number;
  /** Milliseconds after a read of the keys in which an unknown `kid` triggers no other read; 30 s by default. */
  readonly keysCooldown?: number;
  /** Timeout of a read in milliseconds; 5 s by default. */
  readonly timeout?: number;
}

/** Thrown if the issuer is unreachable or its response is unusable, so that a token can be neither accepted nor rejected. */
export class IssuerUnavailable extends Error {
  override readonly name = "IssuerUnavailable";
}

/**
 * Returns a function that finds the issuer's key for a token. The issuer's metadata is read for the first token and kept. The keys are read
 * then, again when they are ten minutes old, and on an unknown `kid` outside the cooldown (jose measures these by the system clock).
 * Concurrent calls share a read. Rejects with `IssuerUnavailable`, or with jose's error if there is no such key.
 */
export function issuerKeys(options: IssuerOptions): JWTVerifyGetKey {
  const { issuer, keysCooldown = 30_000, timeout = 5_000 } = options;
  const read = createReader(options);
  const keySet = keepOnSuccess(async () => {
    // OpenID Connect Discovery 1.0 §3, §4.
    const metadataUrl = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const keysUrl = await read(metadataUrl, AbortSignal.timeout(timeout), (metadata) => keysUrlOf(metadata, issuer));
    return createRemoteJWKSet(keysUrl, {
      timeoutDuration: timeout,
      cooldownDuration: keysCooldown,
      [customFetch]: (href, { signal }) => read(href, signal, keysResponse),
    });
  });
  return async (header, token) => (await keySet())(header, token);
}

/** Requires metadata of this issuer (§4.3). Keys over http are allowed only for an issuer on this machine. */
function keysUrlOf(metadata: unknown, issuer: string): URL {
  if (memberOf(metadata, "issuer") !== issuer) throw new Error("the metadata belongs to a different issuer");
  const url = new URL(String(memberOf(metadata, "jwks_uri")));
  const isLocal = new URL(issuer).protocol === "http:" && url.protocol === "http:" && isLoopbackHost(url.host);
  if (url.protocol === "https:" || isLocal) return url;
  throw new Error("jwks_uri is not an https URL");
}

/** Validates before jose does: after a response that is not a JWK Set, jose would read again immediately. */
function keysResponse(document: unknown): Response {
  const keys = memberOf(document, "keys");
  if (Array.isArray(keys) && keys.every((key) => typeof key === "object")) return Response.json(document);
  throw new Error("the response is not a JWK Set");
}

/** Reads a JSON document from a URL and converts it with `parse`, which may throw. */
type DocumentReader = <T>(url: string, signal: AbortSignal, parse: (document: unknown) => T) => Promise<T>;

/** Returns a reader that rejects with `IssuerUnavailable` only. */
function createReader({ fetch = globalThis.fetch, clock, retryPause = 5_000 }: IssuerOptions): DocumentReader {
  let failure: { readonly error: IssuerUnavailable; readonly time: number } | undefined;
  return async (url, signal, parse) => {
    if (failure !== undefined && isWithin(clock.now() - failure.time, retryPause)) throw failure.error;
    try {
      const document = parse(await fetchJson(fetch, url, signal));
      failure = undefined;
      return document;
    } catch (cause) {
      const error = new IssuerUnavailable(`cannot read ${url}`, { cause });
      failure = { error, time: clock.now() };
      throw error;
    }
  };
}

/** False if the clock was set back, which ends the pause. */
function isWithin(elapsed: number, pause: number): boolean {
  return elapsed >= 0 && elapsed < pause;
}

/** Follows no redirects: only the issuer itself is trusted. */
async function fetchJson(fetch: Fetch, url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { headers: { accept: "application/json" }, redirect: "manual", signal });
  if (response.status === 200) return response.json();
  await response.body?.cancel();
  throw new Error(`the response status is ${response.status}, not 200`);
}

/** Memoizes the first success of `load`. Concurrent callers share one run. */
function keepOnSuccess<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}
