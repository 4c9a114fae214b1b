import { invalidArgument } from "../../domain/errors.ts";
import type { AddressPolicy } from "../../webhooks/sending/address-policy.ts";
import { type Get, networks } from "./values.ts";

/** Returns where webhooks may be sent. Throws `INVALID_ARGUMENT` naming the variable. */
export function toWebhooks(get: Get): AddressPolicy {
  const proxy = get("KEYHOLD_WEBHOOK_PROXY");
  return {
    allowedCidrs: networks("KEYHOLD_WEBHOOK_ALLOW_CIDRS", get("KEYHOLD_WEBHOOK_ALLOW_CIDRS")),
    proxy: proxy === undefined ? null : proxyUrl(proxy),
  };
}

/** Errors do not contain the text because it may include a password. */
function proxyUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.pathname === "/" && !/[?#]/.test(text)) return text;
  throw invalidArgument(
    "KEYHOLD_WEBHOOK_PROXY",
    "must have the form http://host:port or https://user:password@host:port",
  );
}
