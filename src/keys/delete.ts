import { parseKeyId } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { changeKey } from "./change.ts";
import type { KeysContext } from "./ports.ts";

/** Deletes an imported key. Its raw key is unknown afterwards and may be imported again. */
export async function deleteImportedKey(context: KeysContext, principal: Principal, keyId: string): Promise<void> {
  const name = { keyId: parseKeyId(keyId, "key_id"), kind: "imported" } as const;
  await changeKey(context, principal, name, { verb: "delete" }, () => undefined);
}
