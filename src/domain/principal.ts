import { ADMIN_SCOPE } from "./admin-scopes.ts";
import { KeyholdError } from "./errors.ts";
import type { KeyPageGrant } from "./key-page.ts";

/**
 * How a caller is known: by no credential, an admin token, an access token of the OIDC issuer, a session of the key page, the secret of the
 * key that the call is about, as a gateway by its network or client certificate, or as the operator who runs a command on the database itself.
 */
export type AuthMethod = "none" | "admin-token" | "oidc" | "key-page" | "secret" | "network" | "mtls" | "local";

/** Limits on which keys a caller may see and change, whatever its scopes. */
export interface Restrictions {
  /** The actors whose keys the caller may handle; null: any. */
  readonly actorIds: readonly string[] | null;
  /** What a session of the key page permits; absent for every other caller. */
  readonly keyPage?: KeyPageGrant;
}

export const UNRESTRICTED: Restrictions = Object.freeze({ actorIds: null });

/** The part of a principal that its credential determines: the same in all of its calls. Contains no secret. */
export interface Identity {
  readonly subject: string;
  readonly method: AuthMethod;
  /** The key that the caller has authenticated with, or with which its session of the key page was created. */
  readonly keyId?: string;
  /** The version of the secret of that key. */
  readonly secretVersion?: number;
  readonly scopes: readonly string[];
  readonly restrictions: Restrictions;
  /** When the credential expires; undefined if it does not. */
  readonly expireTime?: Date;
  /** The issuer of an OIDC access token. */
  readonly issuer?: string;
}

/** The caller of one call. `auth/` creates it, the policy of the RPC is checked against it, and every verb of `keys/` receives it. */
export interface Principal extends Identity {
  /** The RPC, such as `keyhold.v2alpha1.ApiKeysService/RevokeApiKey`; empty for a local caller. */
  readonly rpc: string;
  /** The IP address of the peer, which may be a proxy; empty if unknown, or for a local caller. */
  readonly peerAddress: string;
  /** The IP address of the client, by the word of the trusted proxies if it came through one; empty if unknown, or for a local caller. */
  readonly clientAddress: string;
  /** The header `User-Agent`; empty without one. */
  readonly userAgent: string;
  /** The request id: answered as `x-request-id`, and `reqId` in the log. */
  readonly callId: string;
}

/** Throws `CALLER_NOT_PERMITTED` for a caller that may handle the keys of some actors only. `action` completes the message. */
export function requireUnrestricted({ restrictions: { actorIds } }: Principal, action: string): void {
  if (actorIds === null) return;
  throw new KeyholdError("CALLER_NOT_PERMITTED", `an actor-restricted caller cannot ${action}`);
}

/** Returns what the call of a principal determines. The addresses are unknown once the call has ended and its client has disconnected. */
export function callDetails({ rpc, peerAddress, clientAddress, userAgent, callId }: Principal) {
  return { rpc, peerAddress, clientAddress, userAgent, callId };
}

/** Returns the name of a caller for the log, such as `oidc:alice`. */
export function callerName({ method, subject }: Identity): string {
  return `${method}:${subject}`;
}

/** Returns the principal for commands that work on the database directly; they may do everything. */
export function localOperator(subject: string, callId: string): Principal {
  return {
    ...{ subject, method: "local", scopes: [ADMIN_SCOPE], restrictions: UNRESTRICTED },
    ...{ rpc: "", peerAddress: "", clientAddress: "", userAgent: "", callId },
  };
}
