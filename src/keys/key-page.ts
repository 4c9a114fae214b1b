import { parseDuration } from "../domain/duration.ts";
import { checkAll, invalidArgument, KeyholdError } from "../domain/errors.ts";
import { newId } from "../domain/key.ts";
import type { KeyPageGrant } from "../domain/key-page.ts";
import type { AuthMethod, Principal } from "../domain/principal.ts";
import type { Clock } from "../lib/clock.ts";
import { isLoopbackHost } from "../lib/host-names.ts";
import type { Random } from "../lib/random.ts";
import type { Sealer } from "../token/sealer.ts";
import { assertActorAllowed, isReserved } from "./authorization.ts";

/** The caller that has created a session. The session is accepted for as long as this caller is. */
export interface KeyPageCreator {
  readonly method: AuthMethod;
  readonly subject: string;
  /** The admin token, and the version of its secret. */
  readonly keyId?: string;
  readonly secretVersion?: number;
  /** Milliseconds since the epoch; absent: never. */
  readonly expireTime?: number;
}

/** A session of the key page, as it is sealed: in the URL that opens it, and then in a cookie. */
export interface KeyPageSession {
  /** A UUID (version 7). */
  readonly id: string;
  readonly grant: KeyPageGrant;
  readonly creator: KeyPageCreator;
}

/** A session that was opened. */
export interface OpenKeyPageSession extends KeyPageSession {
  /** When it ends, in milliseconds since the epoch. */
  readonly expireTime: number;
}

/** The scheme of the header `Authorization` in which the server puts the sealed session of a call from the key page. */
const SCHEME = "KeyholdKeyPage ";

export function keyPageAuthorization(sealed: string): string {
  return SCHEME + sealed;
}

/** Returns the sealed session in a header `Authorization`; undefined if that has another scheme. */
export function keyPageSessionIn(authorization: string): string | undefined {
  return authorization.startsWith(SCHEME) ? authorization.slice(SCHEME.length) : undefined;
}

/** A session to store, so that its URL opens it once. */
export interface NewKeyPageSession {
  readonly sessionId: string;
  readonly grant: KeyPageGrant;
  /** When the URL expires. */
  readonly expireTime: Date;
}

export interface KeyPageStore {
  /** Stores a session, and removes some that have expired. */
  add(session: NewKeyPageSession, principal: Principal): Promise<void>;
  /** Returns whether this call has opened the session: true once. */
  open(sessionId: string, principal: Principal): Promise<boolean>;
}

export interface KeyPagesContext {
  readonly store: KeyPageStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Seals what is in URLs. */
  readonly links: Sealer<KeyPageSession>;
  /** Why there is no key page; null: there is one. */
  readonly unavailable: string | null;
  /** Returns the origin at which browsers reach a host of this server; undefined if unknown. */
  originOf(host: string): string | undefined;
}

/** The path of the page. */
export const KEY_PAGE_PATH = "/keys";

/** How long a URL opens its session, and how long the session lasts then, in milliseconds. */
export const LINK_LIFETIME = 600_000;
export const KEY_PAGE_LIFETIME = 3_600_000;

/** Bytes of a session as JSON, with which its cookie has at most 4,096. */
const MAX_BYTES = 2_600;

export interface KeyPageInput extends Omit<KeyPageGrant, "maxTtl" | "returnUrl"> {
  readonly maxTtl: string | undefined;
  readonly returnUrl: string | undefined;
}

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseKeyPageInput({ maxTtl, returnUrl, ...input }: KeyPageInput): KeyPageGrant {
  const allowedScopes = [...new Set(input.allowedScopes)];
  const [ttl, url] = checkAll(
    () => (maxTtl === undefined ? null : parseDuration(maxTtl, "max_ttl")),
    () => (returnUrl === undefined ? null : parseReturnUrl(returnUrl)),
    () => {
      const index = input.allowedScopes.findIndex(isReserved);
      const description = "must not be a scope over Keyhold: the owner of keys gets no rights over the service";
      if (index !== -1) throw invalidArgument(`allowed_scopes[${index}]`, description, "VALUE_NOT_ALLOWED");
    },
  );
  const grant = {
    ...{ actorId: input.actorId, permissions: [...new Set(input.permissions)], allowedScopes },
    ...{ maxTtl: ttl, returnUrl: url },
  };
  if (Buffer.byteLength(JSON.stringify(grant)) <= MAX_BYTES) return grant;
  const description = `must have, with actor_id and return_url, at most ${MAX_BYTES} bytes as JSON: the session is kept in a cookie`;
  throw invalidArgument("allowed_scopes", description, "TOO_LARGE");
}

function parseReturnUrl(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackHost(url.host))) return url.href;
  throw invalidArgument("return_url", "must be an https URL, or an http URL of a loopback address");
}

/**
 * Creates a session, and returns the URL that opens it. `host` is that of the call.
 *
 * @throws `CALLER_NOT_PERMITTED` if the caller may not handle the keys of the actor, `KEY_PAGES_UNAVAILABLE`
 */
export async function createKeyPageSession(
  { store, clock, random, links, unavailable, originOf }: KeyPagesContext,
  principal: Principal,
  grant: KeyPageGrant,
  host: string,
) {
  assertActorAllowed(grant.actorId, principal);
  if (unavailable !== null) throw new KeyholdError("KEY_PAGES_UNAVAILABLE", unavailable);
  const origin = originOf(host);
  if (origin === undefined) {
    const message = "the origin at which browsers reach the key page is unknown; set KEYHOLD_CONSOLE_URL";
    throw new KeyholdError("KEY_PAGES_UNAVAILABLE", message);
  }
  const sessionId = newId(clock.now(), random);
  const { expireTime } = links;
  const token = await links.seal({ id: sessionId, grant, creator: creatorOf(principal) });
  await store.add({ sessionId, grant, expireTime }, principal);
  return { sessionId, url: `${origin}${KEY_PAGE_PATH}#${token}`, expireTime };
}

function creatorOf({ method, subject, keyId, secretVersion, expireTime }: Principal): KeyPageCreator {
  return {
    ...{ method, subject },
    ...(keyId !== undefined && { keyId }),
    ...(secretVersion !== undefined && { secretVersion }),
    ...(expireTime !== undefined && { expireTime: expireTime.getTime() }),
  };
}
