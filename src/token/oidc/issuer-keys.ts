import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from "jose";
import { isLoopbackHost } from "../../lib/host-names.ts";
import { createReader, type DocumentReader, type ReaderOptions } from "./reader.ts";

export interface IssuerOptions extends ReaderOptions {
  readonly issuer: string;
  /** Milliseconds after the keys were read in which an unknown `kid` does not make us read them again. */
  readonly keysCooldown: number;
  /** Milliseconds that one read may take. */
  readonly timeout: number;
}

/**
 * Finds the key that a token names among those that the issuer publishes. The issuer's metadata is read at the first
 * token and kept for good; its keys are read then, again when they are ten minutes old, and on an unknown `kid` outside
 * the cooldown (jose keeps these times by the clock of the system). However many tokens wait, each is read once.
 * Rejects with `IssuerUnavailable`, or with the error of jose that says why there is no such key.
 */
export function issuerKeys(options: IssuerOptions): JWTVerifyGetKey {
  const read = createReader(options);
  const keySet = keepOnSuccess(async () => remoteKeySet(await discoverKeysUrl(options, read), options, read));
  return async (header, token) => (await keySet())(header, token);
}

/** `jwks_uri` of the issuer's metadata (OpenID Connect Discovery 1.0 §3, §4). */
function discoverKeysUrl({ issuer, timeout }: IssuerOptions, read: DocumentReader): Promise<URL> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  return read(url, AbortSignal.timeout(timeout), (metadata) => keysUrl(metadata, issuer));
}

/** The metadata must be those of this very issuer (§4.3). Over http, only an issuer on this machine may publish its keys there. */
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

/** jose wants a `Response`, and after one that is no JWK Set would ask again at once: to us that is a failure. */
function keysResponse(document: unknown): Response {
  const keys = member(document, "keys");
  if (Array.isArray(keys) && keys.every((key) => typeof key === "object")) return Response.json(document);
  throw new Error("the answer is not a JWK Set");
}

function member(document: unknown, name: string): unknown {
  return new Map(Object.entries(Object(document))).get(name);
}

/** Runs `load` until it has succeeded once: one run at a time, of which all callers get the result. */
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
