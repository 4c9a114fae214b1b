import { authorizeBy } from "../api/gateways/authorize.ts";
import type { OnDecision } from "../api/gateways/decision.ts";
import type { ApiContext } from "../api/row.ts";
import { createGatewayGuard } from "../auth/gateway-callers.ts";
import type { Guard } from "../auth/guard.ts";
import { clientAddressByEnvoy, clientAddressFrom } from "../lib/client-address.ts";
import { EXT_AUTHZ_TOKEN_HEADERS } from "../transport/gateways/ext-authz.ts";
import { GATEWAY_TOKEN_HEADER } from "../transport/gateways/forward-auth.ts";
import type { GatewayOptions } from "../transport/server.ts";
import type { Config } from "./config/config.ts";
import type { GatewayKind, Instruments } from "./metrics.ts";

/** Returns the options of the endpoints for gateways. */
export function gatewayOptions(
  { gateways, trustedProxies }: Config,
  api: ApiContext,
  guard: Guard,
  { limits, gatewayDecisions }: Instruments,
): GatewayOptions {
  const { protocols, callers: methods, networks } = gateways;
  const authorize = authorizeBy(api, gateways);
  const guardBy = (tokenHeaders: readonly string[]) =>
    createGatewayGuard({ methods, networks, guard, limits, tokenHeaders });
  const countAs =
    (kind: GatewayKind): OnDecision =>
    (status) =>
      gatewayDecisions.add(kind, String(status));
  const forwardAuth = {
    authorize,
    guard: guardBy([GATEWAY_TOKEN_HEADER]),
    clientAddressOf: clientAddressFrom(trustedProxies),
    onDecision: countAs("forward_auth"),
  };
  const extAuthz = {
    authorize,
    guard: guardBy(EXT_AUTHZ_TOKEN_HEADERS),
    clientAddressOf: clientAddressByEnvoy(trustedProxies),
    onDecision: countAs("ext_authz"),
  };
  return {
    forwardAuth: protocols.includes("forward-auth") ? forwardAuth : undefined,
    extAuthz: protocols.includes("ext-authz") ? extAuthz : undefined,
  };
}
