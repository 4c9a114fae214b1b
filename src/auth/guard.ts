import {
  ADMIN_SCOPE,
  type AdminScope,
  includesScope,
  isPermitted,
  type Policy,
  scopesIncluding,
} from "../domain/admin-scopes.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { Identity, Principal } from "../domain/principal.ts";
import { keyPageSessionIn } from "../keys/key-page.ts";
import { type ClientAddressOf, clientAddressBehind } from "../lib/client-address.ts";
import { andThen, type MaybePromise, recover } from "../lib/maybe-promise.ts";
import { memoizable } from "../lib/memoize.ts";
import type { Presentation } from "../verify/context.ts";
import { CallLimits } from "./call-limits.ts";
import { type AddressOf, admitAs, anonymous, type GuardedCall } from "./call-principal.ts";
import { bearerOf, bearerOrPasswordOf } from "./caller-credential.ts";
import { RejectedCredential, unauthenticated } from "./rejected-credential.ts";

/**
 * Returns the identity behind a bearer credential; null if it is not of the kind that this method accepts. Throws or rejects if it is, and
 * is not valid.
 */
export type Authenticate = (credential: string, presentation: Presentation) => MaybePromise<Identity | null>;

/** The part of an RPC's row that a guard needs. */
export interface GuardedRpc {
  /** `package.Service/Method`, for the log, metrics, traces and the audit log. */
  readonly name: string;
  readonly method: { readonly name: string };
  readonly policy: Policy | undefined;
  /** Whether the credential may also be the password of the scheme Basic, for clients that know no other; false by default. */
  readonly acceptsBasic?: boolean;
}

/** Authorizes a call, and returns its principal. Throws or rejects if it is rejected; one to an RPC without a policy always is. */
export type Guard = (
  rpc: GuardedRpc,
  call: GuardedCall,
  /** For a call by a gateway, which is the peer: the headers of its token in lower case, of which the first that is present counts. */
  tokenHeaders?: readonly string[],
) => MaybePromise<Principal>;

export interface GuardOptions {
  /** Authenticators, in the order in which they are tried. */
  readonly authenticators: readonly Authenticate[];
  /** Authenticates sessions of the key page, which only the server itself puts into the header `Authorization`; none by default. */
  readonly keyPageSessions?: Authenticate;
  /** Whether a caller without a credential may do everything: only if the operator configured it, or on loopback. */
  readonly allowUnauthenticated: boolean;
  /** Finds the client of a call that came through proxies; the peer by default. */
  readonly clientAddressOf?: ClientAddressOf;
  /** No limits by default. */
  readonly limits?: CallLimits;
}

/** The identity of a caller without a credential when the operator requires none. */
const unauthenticatedAdmin: Identity = memoizable({ ...anonymous, scopes: [ADMIN_SCOPE] });

export function createGuard({
  authenticators,
  keyPageSessions = () => null,
  allowUnauthenticated,
  limits = new CallLimits(),
  clientAddressOf = clientAddressBehind([]),
}: GuardOptions): Guard {
  const clientOf: AddressOf = (call) => clientAddressOf(call.peerAddress, call.header("x-forwarded-for"));
  const gatewayOf: AddressOf = (call) => clientAddressOf(call.peerAddress, undefined);
  return ({ name, method, policy, acceptsBasic }, call, tokenHeaders) => {
    const addressOf = tokenHeaders === undefined ? clientOf : gatewayOf;
    if (policy === undefined) throw new KeyholdError("CALLER_NOT_PERMITTED", `no access rule allows ${method.name}`);
    if (policy === "public") limits.admitPublic(name, call, addressOf);
    if (policy === "public" || policy === "probe") return admitAs(anonymous, name, call, addressOf);
    return recover(
      () => {
        const authorization = authorizationOf(call, tokenHeaders);
        const credentialOf = acceptsBasic === true ? bearerOrPasswordOf : bearerOf;
        const session = authorization === undefined ? undefined : keyPageSessionIn(authorization);
        const isExempt = allowUnauthenticated && (authorization === undefined || authenticators.length === 0);
        const identity =
          session !== undefined
            ? tryEach([keyPageSessions], session, new FromClient(call, addressOf))
            : isExempt
              ? unauthenticatedAdmin
              : tryEach(authenticators, credentialOf(authorization), new FromClient(call, addressOf));
        return andThen(identity, (identity) => admitAs(requirePermitted(identity, policy), name, call, addressOf));
      },
      (error) => {
        throw limits.reject(error, name, call, addressOf);
      },
    );
  };
}

const AUTHORIZATION: readonly string[] = ["authorization"];

function authorizationOf(call: GuardedCall, names = AUTHORIZATION): string | undefined {
  for (const name of names) {
    const value = call.header(name);
    if (value !== undefined) return value;
  }
  return undefined;
}

const NO_SCOPES: readonly string[] = [];

/** The presentation of a credential by the client of a call. Its address is read on use: most credentials are not restricted to addresses. */
class FromClient implements Presentation {
  readonly #call: GuardedCall;
  readonly #addressOf: AddressOf;
  readonly requiredScopes = NO_SCOPES;

  constructor(call: GuardedCall, addressOf: AddressOf) {
    this.#call = call;
    this.#addressOf = addressOf;
  }

  get clientIp() {
    return this.#addressOf(this.#call);
  }
}

function tryEach(
  [first, ...others]: readonly Authenticate[],
  credential: string,
  presentation: Presentation,
): MaybePromise<Identity> {
  if (first === undefined) {
    throw unauthenticated("unsupported credential type", { reason: "UNKNOWN_KIND" });
  }
  return andThen(first(credential, presentation), (identity) => identity ?? tryEach(others, credential, presentation));
}

function requirePermitted(identity: Identity, policy: Exclude<Policy, "public" | "probe">): Identity {
  return policy === "authenticated" ? requireAnyScope(identity) : requireScope(identity, policy);
}

/** Rejects a credential that is valid but is not an admin token, such as the API key of a customer. */
export function requireAnyScope(identity: Identity): Identity {
  if (isPermitted(identity.scopes, "authenticated")) return identity;
  const message = "the call requires at least one Keyhold scope, such as keyhold:keys.read or keyhold:verify";
  throw new RejectedCredential("CALLER_NOT_PERMITTED", message, { reason: "NOT_PERMITTED", caller: identity });
}

export function requireScope(identity: Identity, scope: AdminScope): Identity {
  if (includesScope(identity.scopes, scope)) return identity;
  const message = `the call requires the scope ${scopesIncluding(scope).join(" or ")}`;
  throw new RejectedCredential("CALLER_NOT_PERMITTED", message, { reason: "NOT_PERMITTED", caller: identity }, scope);
}
