import type { AdminScope } from "../domain/admin-scopes.ts";
import { type Identity, UNRESTRICTED } from "../domain/principal.ts";
import { allowsAddress } from "../lib/cidr.ts";
import { recover } from "../lib/maybe-promise.ts";
import { memoizable } from "../lib/memoize.ts";
import type { CallLimits } from "./call-limits.ts";
import { admitAs, type GuardedCall } from "./call-principal.ts";
import type { Guard } from "./guard.ts";
import { RejectedCredential } from "./rejected-credential.ts";

/** How a gateway may prove that it is one: an admin token, the address of the peer, or a client certificate. */
export const GATEWAY_CALLER_METHODS = ["token", "network", "mtls"] as const;

export type GatewayCallerMethod = (typeof GATEWAY_CALLER_METHODS)[number];

interface GatewayGuardOptions {
  /** Any one of them suffices. */
  readonly methods: readonly GatewayCallerMethod[];
  /** Canonical CIDR blocks of gateways, for `network`. */
  readonly networks: readonly string[];
  /** Authorizes a gateway by its token. */
  readonly guard: Guard;
  readonly limits: CallLimits;
  /** The headers of the token in lower case; the first that is present counts. `authorization` is the client's in forward auth. */
  readonly tokenHeaders: readonly string[];
}

/** The scope that the token of a gateway needs. */
export const GATEWAY_SCOPE: AdminScope = "keyhold:verify";

const GATEWAY: Omit<Identity, "method"> = { subject: "gateway", scopes: [GATEWAY_SCOPE], restrictions: UNRESTRICTED };

const BY_NETWORK: Identity = memoizable({ ...GATEWAY, method: "network" });

/** The caller is the peer itself: what a header says of addresses is about its client. */
const peerOf = (call: GuardedCall): string => call.peerAddress;

/** Returns a guard that authorizes gateways. It rejects every other caller with `CALLER_NOT_PERMITTED`. */
export function createGatewayGuard({ methods, networks, guard, limits, tokenHeaders }: GatewayGuardOptions): Guard {
  const identify = ({ peerAddress, certificateSubject }: GuardedCall): Identity | undefined => {
    if (methods.includes("network") && allowsAddress(networks, peerAddress)) return BY_NETWORK;
    if (!methods.includes("mtls") || certificateSubject === undefined) return undefined;
    return { ...GATEWAY, method: "mtls", subject: certificateSubject };
  };
  return (rpc, call) => {
    const identity = identify(call);
    if (identity !== undefined) return admitAs(identity, rpc.name, call, peerOf);
    if (methods.includes("token")) return recover(() => guard(rpc, call, tokenHeaders), rejectGateway);
    throw limits.reject(notPermitted(`authenticate with ${methods.join(" or ")}`), rpc.name, call, peerOf);
  };
}

/** Throws without a challenge: a client of the gateway must not take the rejection of the gateway for one of its own credential. */
function rejectGateway(error: unknown): never {
  throw error instanceof RejectedCredential ? notPermitted(error.message) : error;
}

function notPermitted(why: string): RejectedCredential {
  const message = `the gateway was rejected: ${why}`;
  return new RejectedCredential("CALLER_NOT_PERMITTED", message, { reason: "NOT_PERMITTED" });
}
