import { invalidArgument } from "../../domain/errors.ts";
import type { Get } from "./values.ts";

/** Returns how people sign in to the console by OpenID Connect; null: they do not. */
export function toConsoleOidc(get: Get) {
  const clientId = get("KEYHOLD_CONSOLE_OIDC_CLIENT_ID");
  const others = {
    KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET: get("KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET"),
    KEYHOLD_CONSOLE_OIDC_SCOPES: get("KEYHOLD_CONSOLE_OIDC_SCOPES"),
  };
  if (clientId !== undefined) {
    return {
      clientId,
      /** Null: a public client. */
      clientSecret: others.KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET ?? null,
      scopes: scopes(others.KEYHOLD_CONSOLE_OIDC_SCOPES),
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
