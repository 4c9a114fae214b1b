import { parseKeyId } from "../domain/key-id.ts";
import type { Authority } from "./authority.ts";
import type { KeysContext } from "./context.ts";
import { explainRejection } from "./rejection.ts";
import type { KeyName } from "./store.ts";
import { changedMeanwhile } from "./update.ts";

/** Removes an imported key: the raw key is unknown from then on. */
export async function deleteImportedKey(
  { store, clock }: KeysContext,
  keyId: string,
  authority: Authority,
): Promise<void> {
  const name: KeyName = { keyId: parseKeyId(keyId, "key_id"), kind: "imported" };
  if (await store.delete(name, authority)) return;
  throw await explainRejection(store, name, authority, clock.now(), () => null, changedMeanwhile);
}
