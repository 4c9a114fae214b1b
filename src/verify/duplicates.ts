import type { FindKeys, VerifiableRecord } from "./reader.ts";

/** Called with the ids of keys that have the same raw key, oldest first. */
export type OnDuplicates = (keyIds: readonly string[]) => void;

/** Maximum number of duplicates tracked, so that each is reported once. */
const MAX_REPORTED = 1_000;

/** Wraps `findKeys` to report raw keys that are stored as several keys, each once per process. */
export function reportingDuplicates(findKeys: FindKeys, onDuplicates: OnDuplicates): FindKeys {
  const reported = new Set<string>();
  const report = (found: readonly VerifiableRecord[]) => {
    const records = found.filter((one) => !isSlow(one));
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

/** Returns whether a key may have been found by a prefix, which keys with other raw keys have too. */
function isSlow({ secrets: [secret] }: VerifiableRecord): boolean {
  return typeof secret?.hash?.parameters === "string";
}

/**
 * Returns the record that determines the verdict on a raw key with several: a revoked one, else the first to expire, else the oldest. A raw key
 * thus becomes invalid with the first of its records, regardless of the current root secret. Returns null without records.
 */
export function strictest(records: readonly VerifiableRecord[]): VerifiableRecord | null {
  return records.toSorted(compare)[0] ?? null;
}

function compare({ key: a }: VerifiableRecord, { key: b }: VerifiableRecord): number {
  const byRevocation = Number(b.revokeTime !== null) - Number(a.revokeTime !== null);
  return byRevocation || compareTimes(a.expireTime, b.expireTime) || (a.keyId < b.keyId ? -1 : 1);
}

function compareTimes(a: Date | null, b: Date | null): number {
  const [first, second] = [a, b].map((time) => time?.getTime() ?? Number.MAX_SAFE_INTEGER);
  return (first ?? 0) - (second ?? 0);
}
