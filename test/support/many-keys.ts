import { newRawKey, succeeded } from "./conformance.ts";
import { type Json, paths, type RestClient } from "./rest.ts";

/** Imports keys and returns their raw keys. */
export async function importMany(rest: RestClient, count: number, fields: Record<string, unknown>): Promise<string[]> {
  const rawKeys = Array.from({ length: count }, newRawKey);
  for (let start = 0; start < count; start += 1000) {
    const requests = rawKeys.slice(start, start + 1000).map((raw_key) => ({ name: "one of many", ...fields, raw_key }));
    succeeded(await rest("POST", `${paths.imported}:batchCreate`, { requests }));
  }
  return rawKeys;
}

/** Returns how many of the credentials have each verdict: `valid`, or the error. */
export async function verdictsOf(rest: RestClient, credentials: readonly string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let start = 0; start < credentials.length; start += 1000) {
    const requests = credentials.slice(start, start + 1000).map((credential) => ({ credential }));
    const { results } = succeeded(await rest("POST", `${paths.keys}:batchVerify`, { requests }));
    for (const { is_valid, error_code } of results as Json[]) {
      const verdict = is_valid ? "valid" : error_code;
      counts[verdict] = (counts[verdict] ?? 0) + 1;
    }
  }
  return counts;
}
