import type { Authority } from "../keys/authority.ts";
import { ADMIN_SCOPE, type AdminScope } from "./policy.ts";

/** Who is calling. */
export interface Caller {
  /** For the log: how the caller is known, and as whom. Never a credential. */
  readonly method: "none" | "admin-token" | "oidc";
  readonly subject: string;
  readonly scopes: readonly string[];
}

/** The caller of a call that needs none, or of a server that asks for none. */
export const anonymous: Caller = Object.freeze({ method: "none", subject: "anonymous", scopes: [] });

/** The caller when the operator has chosen to ask for no credential: may do everything. */
export const unauthenticatedAdmin: Caller = Object.freeze({
  method: "none",
  subject: "anonymous",
  scopes: [ADMIN_SCOPE],
});

export function mayCall(caller: Caller, scope: AdminScope): boolean {
  return caller.scopes.includes(ADMIN_SCOPE) || caller.scopes.includes(scope);
}

export function authorityOf(caller: Caller): Authority {
  return { grants: caller.scopes.includes(ADMIN_SCOPE) ? "all" : caller.scopes };
}
