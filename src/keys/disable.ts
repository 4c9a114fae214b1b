import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeyName, KeysContext } from "./ports.ts";
import { changedMeanwhile, explainRejection, rejectUnlessActive, rejectUnlessGrantable } from "./rejection.ts";

/** Disables a key until it is enabled. Returns a key that is disabled already unchanged, with the first time and reason. */
export async function disableKey(
  { store, clock }: KeysContext,
  principal: Principal,
  name: KeyName,
  reason: string | null,
): Promise<ApiKey> {
  const now = clock.now();
  const disabled = await store.disable(name, reason, principal, new Date(now));
  if (disabled !== null) return disabled;
  throw await explainRejection(store, name, principal, now, rejectUnlessActive, changedMeanwhile, "earliestTime");
}

/** Enables a disabled key. Returns a key that is not disabled unchanged. */
export async function enableKey({ store, clock }: KeysContext, principal: Principal, name: KeyName): Promise<ApiKey> {
  const now = clock.now();
  const enabled = await store.enable(name, principal, new Date(now));
  if (enabled !== null) return enabled;
  throw await explainRejection(store, name, principal, now, rejectUnlessGrantable(principal));
}
