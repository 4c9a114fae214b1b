import type { KeySecret } from "../../domain/key.ts";
import type { HashLookups } from "../../domain/raw-key-hash.ts";
import type { VerifiableRecord } from "../reader.ts";
import type { HashRecognition } from "./recognition.ts";

/** A secret with a slow hash. */
interface SlowSecret {
  readonly keyId: string;
  readonly secret: KeySecret;
}

/** Returns the secrets of keys that were found by a prefix. The raw key may be that of any or none. */
export function slowSecretsOf(records: readonly VerifiableRecord[]): SlowSecret[] {
  return records.flatMap(({ key, secrets: [secret] }) =>
    typeof secret?.hash?.parameters === "string" ? [{ keyId: key.keyId, secret }] : [],
  );
}

/**
 * Returns the secrets that are those of the raw key. Tries all of them, one at a time: which key decides must not depend on their order. Nothing
 * of a key but its hash is looked at: who knows only a prefix learns nothing else about it.
 */
export async function proveSlow(
  rawKey: string,
  secrets: readonly SlowSecret[],
  { schemes }: HashLookups,
  hashes: HashRecognition,
  source: string,
): Promise<readonly SlowSecret[]> {
  const proven: SlowSecret[] = [];
  for (const one of secrets) {
    const scheme = schemes.find(({ schemeId }) => schemeId === one.secret.hash?.schemeId);
    if (scheme !== undefined && (await hashes.matches(rawKey, scheme, one.secret, source))) proven.push(one);
  }
  return proven;
}
