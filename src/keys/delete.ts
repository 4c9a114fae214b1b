import { parseKeyId } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeyName, KeysContext } from "./ports.ts";
import { explainRejection } from "./rejection.ts";

/** Deletes an imported key. Its raw key is unknown afterwards and may be imported again. */
export async function deleteImportedKey(
  { store, clock }: KeysContext,
  principal: Principal,
  keyId: string,
): Promise<void> {
  const name: KeyName = { keyId: parseKeyId(keyId, "key_id"), kind: "imported" };
  if (await store.delete(name, principal)) return;
  throw await explainRejection(store, name, principal, clock.now(), () => null);
}
