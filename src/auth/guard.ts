import type { DescMethod } from "@bufbuild/protobuf";
import { KeyholdError } from "../errors.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { anonymous, type Caller, mayCall, unauthenticatedAdmin } from "./caller.ts";
import { ADMIN_SCOPE, type Policy, policyOf } from "./policy.ts";

/** Reads a request header by its lower-case name. */
export type ReadHeader = (name: string) => string | undefined;

/** Who presents this bearer credential; null if this way of authentication does not know it. Throws or rejects if it is known and bad. */
export type Authenticate = (credential: string) => MaybePromise<Caller | null>;

/** Says who is calling, or refuses by throwing or rejecting: every RPC passes here, and one without a policy is refused. */
export type Guard = (method: DescMethod, header: ReadHeader) => MaybePromise<Caller>;

export interface GuardOptions {
  /** Ways to authenticate, in the order in which they are asked. */
  readonly authenticators: readonly Authenticate[];
  /** Whether a caller without a credential may do everything: only if the operator said so, or on loopback. */
  readonly allowUnauthenticated: boolean;
}

export function createGuard(options: GuardOptions): Guard {
  return (method, header) => {
    const policy = policyOf(method);
    if (policy === undefined) throw new KeyholdError("CALLER_NOT_PERMITTED", `${method.name} has no policy`);
    if (policy === "public") return anonymous;
    return andThen(identify(options, header("authorization")), (caller) => requireScope(caller, policy));
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
  if (authenticate === undefined) throw unauthenticated("the bearer credential is of no kind that this service takes");
  return andThen(authenticate(credential), (caller) => caller ?? askInTurn(others, credential));
}

/** RFC 6750 §2.1; the scheme in any case (RFC 9110 §11.1). */
function bearerOf(authorization: string | undefined): string {
  if (authorization === undefined)
    throw unauthenticated("the call needs the header Authorization: Bearer <admin token>");
  const [, credential] = /^bearer +([^\s,]+)$/i.exec(authorization) ?? [];
  if (credential === undefined)
    throw unauthenticated("the header Authorization is not of the form Bearer <admin token>");
  return credential;
}

function requireScope(caller: Caller, scope: Exclude<Policy, "public">): Caller {
  if (mayCall(caller, scope)) return caller;
  throw new KeyholdError("CALLER_NOT_PERMITTED", `the call needs the scope ${scope} or ${ADMIN_SCOPE}`, {
    metadata: { scope },
  });
}

export function unauthenticated(message: string): KeyholdError {
  return new KeyholdError("CALLER_UNAUTHENTICATED", message);
}
