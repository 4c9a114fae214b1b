import type { VerifiableRecord } from "./reader.ts";

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
