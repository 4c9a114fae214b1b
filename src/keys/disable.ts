import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { assertActive, assertGrantable, changeKey } from "./change.ts";
import type { KeyName, KeysContext } from "./ports.ts";

/** Disables a key until it is enabled. Returns a key that is disabled already unchanged, with the first time and reason. */
export function disableKey(
  context: KeysContext,
  principal: Principal,
  name: KeyName,
  reason: string | null,
): Promise<ApiKey> {
  return changeKey(context, principal, name, { verb: "disable", reason }, assertActive);
}

/** Enables a disabled key. Returns a key that is not disabled unchanged. */
export function enableKey(context: KeysContext, principal: Principal, name: KeyName): Promise<ApiKey> {
  return changeKey(context, principal, name, { verb: "enable" }, assertGrantable(principal));
}
