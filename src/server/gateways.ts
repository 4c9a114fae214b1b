import { authorizeBy } from "../api/gateways/authorize.ts";
import type { ApiContext } from "../api/row.ts";
import { createGatewayGuard } from "../auth/gateway-callers.ts";
import type { Guard } from "../auth/guard.ts";
import { clientAddressByEnvoy, clientAddressFrom } from "../lib/client-address.ts";
import { EXT_AUTHZ_TOKEN_HEADERS } from "../transport/gateways/ext-authz.ts";
import { GATEWAY_TOKEN_HEADER, type GatewayProtocol } from "../transport/gateways/forward-auth.ts";
import type { GatewayOptions } from "../transport/server.ts";
import type { Config } from "./config/config.ts";
import type { GatewayKind, Instruments } from "./metrics.ts";

export function gatewayOptions(
  { gateways, trustedProxies }: Config,
  api: ApiContext,
  guard: Guard,
  { limits, gatewayDecisions }: Instruments,
): GatewayOptions {
  const { protocols, callers: methods, networks } = gateways;
  const protocol = <A>(kind: GatewayKind, tokenHeaders: readonly string[], clientAddressOf: A): GatewayProtocol<A> => ({
    authorize: authorizeBy(api, gateways),
    guard: createGatewayGuard({ methods, networks, guard, limits, tokenHeaders }),
    clientAddressOf,
    onDecision: (status) => gatewayDecisions.add(kind, String(status)),
  });
  return {
    forwardAuth: protocols.includes("forward-auth")
      ? protocol("forward_auth", [GATEWAY_TOKEN_HEADER], clientAddressFrom(trustedProxies))
      : undefined,
    extAuthz: protocols.includes("ext-authz")
      ? protocol("ext_authz", EXT_AUTHZ_TOKEN_HEADERS, clientAddressByEnvoy(trustedProxies))
      : undefined,
  };
}
