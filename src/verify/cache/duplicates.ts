import type { VerifiableRecord } from "../../domain/key-lookup.ts";
import { isSalted } from "../../hashing/find-by-hash.ts";
import type { FindKeys } from "../reader.ts";

/** Called with the ids of keys that have the same raw key, oldest first. */
export type OnDuplicates = (keyIds: readonly string[]) => void;

/** Maximum number of duplicates tracked, so that each is reported once. */
const MAX_REPORTED = 1_000;

/** Wraps `findKeys` to report raw keys that are stored as several keys, each once per process. A prefix finds keys with different raw keys too. */
export function reportingDuplicates(findKeys: FindKeys, onDuplicates: OnDuplicates): FindKeys {
  const reported = new Set<string>();
  const report = (found: readonly VerifiableRecord[]) => {
    const records = found.filter((record) => !isSalted(record));
    if (records.length < 2) return;
    const keyIds = records.map(({ key }) => key.keyId).sort();
    const name = keyIds.join();
    if (reported.has(name) || reported.size >= MAX_REPORTED) return;
    reported.add(name);
    onDuplicates(keyIds);
  };
  return async (lookups) => {
    const found = await findKeys(lookups);
    for (const records of found) if (records.length > 1) report(records);
    return found;
  };
}
