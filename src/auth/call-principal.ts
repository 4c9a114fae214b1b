import { callerName, type Identity, type Principal, UNRESTRICTED } from "../domain/principal.ts";
import { memoizable, memoize } from "../lib/memoize.ts";

/** The parts of a `Call` of `api/` that a guard needs. */
export interface GuardedCall {
  readonly id: string;
  header(name: string): string | undefined;
  readonly peerAddress: string;
  readonly certificateSubject?: string | undefined;
  readonly log: { add(facts: Readonly<Record<string, string>>): void };
}

/** Returns the address of the client of a call. */
export type AddressOf = (call: GuardedCall) => string;

/** The identity of a caller without a credential. */
export const anonymous: Identity = memoizable({
  method: "none",
  subject: "anonymous",
  scopes: [],
  restrictions: UNRESTRICTED,
});

/** Logs the caller of a call and returns its principal. */
export function admitAs(identity: Identity, rpc: string, call: GuardedCall, addressOf: AddressOf): Principal {
  call.log.add(callerOf(identity));
  return new CallPrincipal(identity, rpc, call, addressOf);
}

const callerOf = memoize((identity: Identity) => ({ caller: callerName(identity) }));

/** An identity in one of its calls. Facts of the call are read on use: most calls never need them. */
export class CallPrincipal implements Principal {
  readonly subject;
  readonly method;
  readonly keyId;
  readonly secretVersion;
  readonly scopes;
  readonly restrictions;
  readonly expireTime;
  readonly issuer;
  readonly rpc;
  readonly callId;
  readonly #call;
  readonly #addressOf;

  constructor(identity: Identity, rpc: string, call: GuardedCall, addressOf: AddressOf) {
    this.subject = identity.subject;
    this.method = identity.method;
    this.keyId = identity.keyId;
    this.secretVersion = identity.secretVersion;
    this.scopes = identity.scopes;
    this.restrictions = identity.restrictions;
    this.expireTime = identity.expireTime;
    this.issuer = identity.issuer;
    this.rpc = rpc;
    this.callId = call.id;
    this.#call = call;
    this.#addressOf = addressOf;
  }

  get peerAddress() {
    return this.#call.peerAddress;
  }

  get clientAddress() {
    return this.#addressOf(this.#call);
  }

  get userAgent() {
    return this.#call.header("user-agent") ?? "";
  }
}
