import type { FindKeys, VerifiableRecord } from "./reader.ts";

/** Told of the ids of keys that are one raw key, oldest first. */
export type OnDuplicates = (keyIds: readonly string[]) => void;

/** Duplicates that are remembered, so that each is reported once. */
const MAX_REPORTED = 1_000;

/** Reports raw keys that are stored as several keys, each once while the process lives. */
export function reportingDuplicates(findKeys: FindKeys, onDuplicates: OnDuplicates): FindKeys {
  const reported = new Set<string>();
  const report = (records: readonly VerifiableRecord[]) => {
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
