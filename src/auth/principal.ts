import { ADMIN_SCOPE } from "../domain/admin-scopes.ts";
import { type Identity, type Principal, UNRESTRICTED } from "../domain/principal.ts";
import { share } from "../lib/memoize.ts";
import type { GuardedCall } from "./guard.ts";

/** The identity of a caller of a public RPC. */
export const anonymous: Identity = share({
  method: "none",
  subject: "anonymous",
  scopes: [],
  restrictions: UNRESTRICTED,
});

/** The identity of a caller without a credential when the operator requires none. */
export const unauthenticatedAdmin: Identity = share({ ...anonymous, scopes: [ADMIN_SCOPE] });

/** An identity in one of its calls. Facts of the call are read on use: most calls never need them. */
export class CallPrincipal implements Principal {
  readonly #identity: Identity;
  readonly #call: GuardedCall;

  constructor(identity: Identity, call: GuardedCall) {
    this.#identity = identity;
    this.#call = call;
  }

  get subject() {
    return this.#identity.subject;
  }

  get method() {
    return this.#identity.method;
  }

  get keyId() {
    return this.#identity.keyId;
  }

  get scopes() {
    return this.#identity.scopes;
  }

  get restrictions() {
    return this.#identity.restrictions;
  }

  get expireTime() {
    return this.#identity.expireTime;
  }

  get peerAddress() {
    return this.#call.peerAddress;
  }

  get userAgent() {
    return this.#call.header("user-agent") ?? "";
  }

  get callId() {
    return this.#call.id;
  }
}
