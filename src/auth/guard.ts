import type { DescMethod } from "@bufbuild/protobuf";
import { KeyholdError } from "../errors.ts";
import { anonymous, type Caller, mayCall, unauthenticatedAdmin } from "./caller.ts";
import { ADMIN_SCOPE, type Policy, policyOf } from "./policy.ts";

/** Reads a request header by its lower-case name. */
export type ReadHeader = (name: string) => string | undefined;

/** Who presents this bearer credential; null if this way of authentication does not know it. Rejects if it is known and bad. */
export type Authenticate = (credential: string) => Promise<Caller | null>;

/** Says who is calling, or refuses: every RPC passes here, and one without a policy is refused. */
export type Guard = (method: DescMethod, header: ReadHeader) => Promise<Caller>;

export interface GuardOptions {
  /** Ways to authenticate, in the order in which they are asked. */
  readonly authenticators: readonly Authenticate[];
  /** Whether a caller without a credential may do everything: only if the operator said so, or on loopback. */
  readonly allowUnauthenticated: boolean;
}

export function createGuard(options: GuardOptions): Guard {
  return async (method, header) => {
    const policy = policyOf(method);
    if (policy === undefined) throw new KeyholdError("CALLER_NOT_PERMITTED", `${method.name} has no policy`);
    if (policy === "public") return anonymous;
    const caller = await identify(options, header("authorization"));
    return requireScope(caller, policy);
  };
}

async function identify({ authenticators, allowUnauthenticated }: GuardOptions, authorization: string | undefined) {
  if (allowUnauthenticated && (authorization === undefined || authenticators.length === 0)) return unauthenticatedAdmin;
  const credential = bearerOf(authorization);
  for (const authenticate of authenticators) {
    const caller = await authenticate(credential);
    if (caller !== null) return caller;
  }
  throw unauthenticated("the bearer credential is of no kind that this service takes");
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
