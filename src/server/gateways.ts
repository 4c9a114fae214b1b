import { authorizeBy } from "../api/gateways/authorize.ts";
import type { ApiContext } from "../api/row.ts";
import { createGatewayGuard } from "../auth/gateway-callers.ts";
import type { Guard } from "../auth/guard.ts";
import { clientAddressFrom } from "../lib/client-address.ts";
import { GATEWAY_TOKEN_HEADER } from "../transport/gateways/forward-auth.ts";
import type { GatewayOptions } from "../transport/server.ts";
import type { Config } from "./config/config.ts";
import type { Instruments } from "./metrics.ts";

/** Returns the options of the endpoints for gateways; undefined if they are off. */
export function gatewayOptions(
  { gateways, trustedProxies }: Config,
  api: ApiContext,
  guard: Guard,
  meters: Instruments,
): GatewayOptions | undefined {
  if (!gateways.protocols.includes("forward-auth")) return undefined;
  const { callers: methods, networks } = gateways;
  return {
    authorize: authorizeBy(api, gateways),
    guard: createGatewayGuard({ methods, networks, guard, limits: meters.limits, tokenHeader: GATEWAY_TOKEN_HEADER }),
    clientAddressOf: clientAddressFrom(trustedProxies),
    onDecision: (status) => meters.gatewayDecisions.add("forward_auth", String(status)),
  };
}
