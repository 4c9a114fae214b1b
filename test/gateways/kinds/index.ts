import type { GatewayKind } from "../gateway.ts";
import { apache } from "./apache.ts";
import { caddy } from "./caddy.ts";
import { haproxy } from "./haproxy.ts";
import { nginx, nginxOfDebian } from "./nginx.ts";

/** Those that ask the forward-auth endpoint. */
export const FORWARD_AUTH: readonly GatewayKind[] = [nginx, nginxOfDebian, caddy, haproxy];

/** Those that run with Keyhold servers. */
export const KINDS: readonly GatewayKind[] = [apache];
