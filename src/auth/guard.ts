import type { DescMethod } from "@bufbuild/protobuf";
import { KeyholdError } from "../domain/errors.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { CallLimits } from "./call-limits.ts";
import { anonymous, type Caller, mayCall, unauthenticatedAdmin } from "./caller.ts";
import { ADMIN_SCOPE, type AdminScope, policyOf } from "./policy.ts";
import { RefusedCredential, unauthenticated } from "./refused-credential.ts";

/** What a guard has to know of a call. */
export interface GuardedCall {
  /** A request header by its lower-case name. */
  header(name: string): string | undefined;
  /** The IP address that the connection comes from. */
  readonly peerAddress: string;
  readonly log: { add(facts: Readonly<Record<string, string>>): void };
}

/** Who presents this bearer credential; null if this way of authentication does not know it. Throws or rejects if it is known and bad. */
export type Authenticate = (credential: string) => MaybePromise<Caller | null>;

/** Says who is calling, or refuses by throwing or rejecting: every RPC passes here, and one without a policy is refused. */
export type Guard = (method: DescMethod, call: GuardedCall) => MaybePromise<Caller>;

export interface GuardOptions {
  /** Ways to authenticate, in the order in which they are asked. */
  readonly authenticators: readonly Authenticate[];
  /** Whether a caller without a credential may do everything: only if the operator said so, or on loopback. */
  readonly allowUnauthenticated: boolean;
  /** By default nothing is limited. */
  readonly limits?: CallLimits;
}

export function createGuard(options: GuardOptions): Guard {
  const { limits = new CallLimits() } = options;
  const authorize = (policy: AdminScope, call: GuardedCall) =>
    andThen(identify(options, call.header("authorization")), (caller) => requireScope(caller, policy));
  return (method, call) => {
    const policy = policyOf(method);
    if (policy === undefined) throw new KeyholdError("CALLER_NOT_PERMITTED", `${method.name} has no policy`);
    if (policy === "public") limits.admitPublic(call);
    if (policy === "public" || policy === "probe") return anonymous;
    try {
      const caller = authorize(policy, call);
      if (!(caller instanceof Promise)) return caller;
      return caller.catch((error: unknown) => {
        throw limits.refuse(error, call);
      });
    } catch (error) {
      throw limits.refuse(error, call);
    }
  };
}

function identify(
  { authenticators, allowUnauthenticated }: GuardOptions,
  authorization: string | undefined,
): MaybePromise<Caller> {
  if (allowUnauthenticated && (authorization === undefined || authenticators.length === 0)) return unauthenticatedAdmin;
  return askInTurn(authenticators, bearerOf(authorization));
}

function askInTurn([authenticate, ...others]: readonly Authenticate[], credential: string): MaybePromise<Caller> {
  if (authenticate === undefined) {
    throw unauthenticated("the bearer credential is of no kind that this service takes", { reason: "UNKNOWN_KIND" });
  }
  return andThen(authenticate(credential), (caller) => caller ?? askInTurn(others, credential));
}

/** RFC 6750 §2.1; the scheme in any case (RFC 9110 §11.1). */
function bearerOf(authorization: string | undefined): string {
  if (authorization === undefined) {
    throw unauthenticated("the call needs the header Authorization: Bearer <admin token>", { reason: "MISSING" });
  }
  const [, credential] = /^bearer +([^\s,]+)$/i.exec(authorization) ?? [];
  if (credential === undefined) {
    throw unauthenticated("the header Authorization is not of the form Bearer <admin token>", { reason: "MALFORMED" });
  }
  return credential;
}

function requireScope(caller: Caller, scope: AdminScope): Caller {
  if (mayCall(caller, scope)) return caller;
  const message = `the call needs the scope ${scope} or ${ADMIN_SCOPE}`;
  throw new RefusedCredential("CALLER_NOT_PERMITTED", message, { reason: "NOT_PERMITTED", caller }, scope);
}
