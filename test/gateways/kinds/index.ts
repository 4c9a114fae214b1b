import type { GatewayKind } from "../gateway.ts";
import { hasTraefik } from "../traefik.ts";
import { apache } from "./apache.ts";
import { caddy } from "./caddy.ts";
import { envoy, envoyOverHttp } from "./envoy.ts";
import { haproxy } from "./haproxy.ts";
import { nginx, nginxOfDebian } from "./nginx.ts";
import { traefik } from "./traefik.ts";

/** Those that ask the forward-auth endpoint. */
export const FORWARD_AUTH: readonly GatewayKind[] = [
  ...[nginx, nginxOfDebian, caddy, haproxy, envoyOverHttp],
  ...(hasTraefik ? [traefik] : []),
];

/** Those that Keyhold answers with the response for the client. */
export const DECIDED: readonly GatewayKind[] = [...FORWARD_AUTH, envoy];

/** All gateways, also one that asks the introspection endpoint. */
export const KINDS: readonly GatewayKind[] = [...DECIDED, apache];
