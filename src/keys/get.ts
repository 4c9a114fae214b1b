import type { ApiKey, KeyKind } from "../domain/key.ts";
import { parseKeyId } from "../domain/key-id.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeysContext } from "./context.ts";
import { keyNotFound } from "./rejection.ts";

/** Returns a key of this kind. */
export async function getKey({ store }: KeysContext, _: Principal, kind: KeyKind, keyId: string): Promise<ApiKey> {
  const name = { keyId: parseKeyId(keyId, "key_id"), kind };
  const stored = await store.get(name);
  if (stored === null) throw keyNotFound(name);
  return stored.key;
}
