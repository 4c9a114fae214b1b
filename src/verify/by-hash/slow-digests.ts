import type { SecretDigest } from "../../domain/key.ts";
import type { FindCandidates } from "../reader.ts";
import { proveSlow, slowSecretsOf } from "./prove.ts";
import type { HashRecognition } from "./recognition.ts";

/** Returns the stored digests of slow hashes of each raw key, whatever the state of their keys. Computes one hash at a time. */
export async function findSlowDigests(
  rawKeys: readonly string[],
  hashes: HashRecognition,
  findCandidates: FindCandidates,
): Promise<ReadonlyMap<string, readonly SecretDigest[]>> {
  const lookups = await hashes.lookups();
  const reads = rawKeys.map((rawKey) => {
    const prefixes = lookups.prefixLengths.flatMap((length) => hashes.prefixDigests(rawKey, length));
    if (prefixes.length === 0) return [];
    return findCandidates({ keyId: null, digests: [], hashes: prefixes.map(({ digest }) => digest) }, "no-store");
  });
  const found = new Map<string, readonly SecretDigest[]>();
  for (const [place, records] of (await Promise.all(reads)).entries()) {
    const rawKey = rawKeys[place] ?? "";
    const proven = await proveSlow(rawKey, slowSecretsOf(records), lookups, hashes, "import");
    found.set(
      rawKey,
      proven.map(({ secret }) => secret.digest),
    );
  }
  return found;
}
