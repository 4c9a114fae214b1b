import type { GatewayKind } from "../gateway.ts";
import { apache } from "./apache.ts";
import { caddy } from "./caddy.ts";
import { haproxy } from "./haproxy.ts";
import { nginx, nginxOfDebian } from "./nginx.ts";

/** Those that ask the forward-auth endpoint. */
export const FORWARD_AUTH: readonly GatewayKind[] = [nginx, nginxOfDebian, caddy, haproxy];

/** All gateways, also those that ask another endpoint. */
export const KINDS: readonly GatewayKind[] = [...FORWARD_AUTH, apache];
