import type { HashAlgorithm, HashScheme, HashSchemeSpec } from "../domain/raw-key-hash.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import { unwrapSecret, type Wrapped, wrapSecret } from "../domain/wrapped-secret.ts";
import type { Random } from "../lib/random.ts";
import type { HashSchemeRecord, HmacKeyRecord, StoredHashing } from "./store.ts";

/** Returns the wrapped texts around the raw key; null if both are empty. */
export function wrapAffixes(
  { algorithm, prefix, suffix }: Pick<HashSchemeSpec, "algorithm" | "prefix" | "suffix">,
  slot: number,
  { current }: KeyRing,
  random: Random,
): Wrapped | null {
  if (prefix === "" && suffix === "") return null;
  return wrapSecret(Buffer.from(JSON.stringify([prefix, suffix])), affixesOf(algorithm, slot), current, random);
}

export function unwrapHmacKey(record: HmacKeyRecord, ring: Pick<KeyRing, "find">): Uint8Array {
  return unwrapSecret(record, hmacKeyOf(record), ring);
}

export function unwrapAffixes(
  { algorithm, slot, affixes }: HashSchemeRecord,
  ring: Pick<KeyRing, "find">,
): Pick<HashScheme, "prefix" | "suffix"> {
  if (affixes === null) return { prefix: "", suffix: "" };
  const [prefix, suffix] = JSON.parse(unwrapSecret(affixes, affixesOf(algorithm, slot), ring).toString());
  return { prefix, suffix };
}

export function hmacKeyOf({ hmacKeyId }: Pick<HmacKeyRecord, "hmacKeyId">) {
  return { purpose: "hmac key", name: hmacKeyId, version: 1 } as const;
}

export function affixesOf(algorithm: HashAlgorithm, slot: number) {
  return { purpose: "hash affixes", name: `${algorithm} ${slot}`, version: 1 } as const;
}

/**
 * Unwraps the schemes. One that cannot be unwrapped is left out and reported: its keys are not found. Those in `known` are returned as
 * the same objects.
 */
export function toSchemes(
  { schemes, hmacKeys }: StoredHashing,
  ring: Pick<KeyRing, "find">,
  known: ReadonlyMap<number, HashScheme>,
  onUnusable: (schemeId: number, error: unknown) => void,
): HashScheme[] {
  const keys = new Map(hmacKeys.map((key) => [key.hmacKeyId, key]));
  return schemes.flatMap((record) => {
    try {
      return known.get(record.schemeId) ?? toScheme(record, keys, ring);
    } catch (error) {
      onUnusable(record.schemeId, error);
      return [];
    }
  });
}

function toScheme(
  record: HashSchemeRecord,
  keys: ReadonlyMap<string, HmacKeyRecord>,
  ring: Pick<KeyRing, "find">,
): HashScheme {
  const { schemeId, algorithm, hmacKeyId } = record;
  const key = hmacKeyId === null ? undefined : keys.get(hmacKeyId);
  const hmacKey = key === undefined ? null : unwrapHmacKey(key, ring);
  return { schemeId, algorithm, ...unwrapAffixes(record, ring), hmacKeyId, hmacKey };
}

export function isSameScheme(a: HashSchemeSpec, b: HashSchemeSpec): boolean {
  return a.algorithm === b.algorithm && a.prefix === b.prefix && a.suffix === b.suffix && a.hmacKeyId === b.hmacKeyId;
}
