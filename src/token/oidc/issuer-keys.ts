import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from "jose";
import { isLoopbackHost } from "../../lib/host-names.ts";
import { createReader, type DocumentReader, type ReaderOptions } from "./reader.ts";

export interface IssuerOptions extends ReaderOptions {
  readonly issuer: string;
  /** Milliseconds after a read of the keys in which an unknown `kid` triggers no other read. */
  readonly keysCooldown: number;
  /** Timeout of a read in milliseconds. */
  readonly timeout: number;
}

/**
 * Returns a function that finds the issuer's key for a token. The issuer's metadata is read for the first token and kept. The keys are read
 * then, again when they are ten minutes old, and on an unknown `kid` outside the cooldown (jose measures these by the system clock).
 * Concurrent calls share a read. Rejects with `IssuerUnavailable`, or with jose's error if there is no such key.
 */
export function issuerKeys(options: IssuerOptions): JWTVerifyGetKey {
  const read = createReader(options);
  const keySet = keepOnSuccess(async () => remoteKeySet(await discoverKeysUrl(options, read), options, read));
  return async (header, token) => (await keySet())(header, token);
}

/** Reads `jwks_uri` from the issuer's metadata (OpenID Connect Discovery 1.0 §3, §4). */
function discoverKeysUrl({ issuer, timeout }: IssuerOptions, read: DocumentReader): Promise<URL> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  return read(url, AbortSignal.timeout(timeout), (metadata) => keysUrl(metadata, issuer));
}

/** Requires metadata of this issuer (§4.3). Keys over http are allowed only for an issuer on this machine. */
function keysUrl(metadata: unknown, issuer: string): URL {
  if (member(metadata, "issuer") !== issuer) throw new Error("the metadata are of another issuer");
  const url = new URL(String(member(metadata, "jwks_uri")));
  const isLocal = new URL(issuer).protocol === "http:" && url.protocol === "http:" && isLoopbackHost(url.host);
  if (url.protocol === "https:" || isLocal) return url;
  throw new Error("jwks_uri is not https");
}

function remoteKeySet(url: URL, { timeout, keysCooldown }: IssuerOptions, read: DocumentReader): JWTVerifyGetKey {
  return createRemoteJWKSet(url, {
    timeoutDuration: timeout,
    cooldownDuration: keysCooldown,
    [customFetch]: (href, { signal }) => read(href, signal, keysResponse),
  });
}

/** Validates before jose does: after a response that is not a JWK Set, jose would read again immediately. */
function keysResponse(document: unknown): Response {
  const keys = member(document, "keys");
  if (Array.isArray(keys) && keys.every((key) => typeof key === "object")) return Response.json(document);
  throw new Error("the answer is not a JWK Set");
}

function member(document: unknown, name: string): unknown {
  return new Map(Object.entries(Object(document))).get(name);
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
