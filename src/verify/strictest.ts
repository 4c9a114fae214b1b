import type { VerifiableRecord } from "./reader.ts";

/**
 * Returns the record by which a raw key with several is judged: a revoked one, else the one that expires first, else the oldest.
 * So a raw key stops with the first of its records, whatever root secret is current. Null without records.
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
