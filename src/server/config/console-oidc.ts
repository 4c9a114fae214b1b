import { invalidArgument } from "../../domain/errors.ts";
import { isLoopbackHost } from "../../lib/host-names.ts";
import type { Get } from "./values.ts";

/** Returns how people sign in to the console by OpenID Connect; null: they do not. */
export function toConsoleOidc(get: Get) {
  const clientId = get("KEYHOLD_CONSOLE_OIDC_CLIENT_ID");
  const others = {
    KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET: get("KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET"),
    KEYHOLD_CONSOLE_OIDC_SCOPES: get("KEYHOLD_CONSOLE_OIDC_SCOPES"),
    KEYHOLD_CONSOLE_URL: get("KEYHOLD_CONSOLE_URL"),
  };
  if (clientId !== undefined) {
    const url = others.KEYHOLD_CONSOLE_URL;
    return {
      clientId,
      /** Null: a public client. */
      clientSecret: others.KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET ?? null,
      scopes: scopes(others.KEYHOLD_CONSOLE_OIDC_SCOPES),
      /** Where browsers reach the console; null: at the address of the server, which is a loopback address. */
      origin: url === undefined ? null : publicOrigin(url),
    };
  }
  const [unused] = Object.entries(others).find(([, value]) => value !== undefined) ?? [];
  if (unused !== undefined) throw invalidArgument(unused, "requires KEYHOLD_CONSOLE_OIDC_CLIENT_ID");
  return null;
}

/** RFC 6749 §3.3, without the comma. `openid` makes it OpenID Connect. */
const SCOPE = /^[!#-+\--[\]-~]+$/;

function scopes(text = ""): readonly string[] {
  const found = text.split(/[\s,]+/).filter((scope) => scope !== "");
  if (found.every((scope) => SCOPE.test(scope))) return [...new Set(["openid", ...found])];
  throw invalidArgument("KEYHOLD_CONSOLE_OIDC_SCOPES", "must be comma-separated scopes, such as openid,keyhold:admin");
}

/** Browsers store the cookies of the console only over TLS or on the loopback. */
function publicOrigin(text: string): string {
  const url = URL.parse(text);
  const isOrigin = url !== null && text.replace(/\/$/, "") === url.origin;
  if (isOrigin && (url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.host))))
    return url.origin;
  throw invalidArgument(
    "KEYHOLD_CONSOLE_URL",
    "must be the https origin at which browsers reach the console, such as https://keyhold.example.com",
  );
}
