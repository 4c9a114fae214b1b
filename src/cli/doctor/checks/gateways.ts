import type { Config } from "../../../server/config/config.ts";
import { type Check, type Finding, ok, warning } from "../finding.ts";
import { dangersIn } from "./access.ts";

/** Checks who may ask as a gateway, and whether gateways can say who their clients are. */
export const checkGateways: Check = async ({ config }) => {
  const { protocols, callers } = config.gateways;
  if (protocols.length === 0) return [];
  return [
    ...evaluateCallers(config),
    ...dangersIn("gateways", config),
    ...evaluateAddresses(config),
    ...(protocols.includes("ext-authz") ? [ok(RAW_HEADERS)] : []),
    ok(`gateways use ${protocols.join(" and ")}, authenticated by ${callers.join(" or ") || "nothing"}`),
  ];
};

/** Nothing in a message shows whether Envoy has changed it. */
const RAW_HEADERS = "Envoy must set encode_raw_headers: true; otherwise it changes credentials that are not UTF-8";

function evaluateCallers({ auth }: Config): Finding[] {
  if (auth.length > 0) return [];
  const message = "requests of gateways are rejected: without KEYHOLD_AUTH, no request may come through a proxy";
  return [warning(message, "set KEYHOLD_AUTH=admin-token")];
}

/** Over gRPC, Envoy names the address of its own peer. */
function evaluateAddresses({ trustedProxies, gateways }: Config): Finding[] {
  if (trustedProxies.length > 0 || !gateways.protocols.includes("forward-auth")) return [];
  const message = "keys that are restricted to addresses are rejected: no gateway is trusted to name the client";
  return [warning(message, "set KEYHOLD_TRUSTED_PROXIES to the addresses of the gateways")];
}
