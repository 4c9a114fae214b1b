import { parseKeyId } from "../record/key-id.ts";
import type { Authority } from "./authority.ts";
import type { KeysContext } from "./context.ts";
import { explainRefusal } from "./explain.ts";
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
  throw await explainRefusal(store, name, authority, clock.now(), () => null, changedMeanwhile);
}
