import type { HashScheme } from "../../src/domain/raw-key-hash.ts";

/** One scheme of each algorithm without a salt, and two with text around the raw key. */
export const FAST_SCHEMES: readonly HashScheme[] = (
  ["SHA256", "SHA384", "SHA512", "SHA512_256", "HMAC_SHA256", "HMAC_SHA512", "SHA256", "SHA256"] as const
).map((algorithm, index) => ({
  schemeId: index + 1,
  algorithm,
  prefix: index === 6 ? "pepper:" : "",
  suffix: index === 7 ? ":pepper" : "",
  hmacKeyId: algorithm.startsWith("HMAC") ? "pepper" : null,
  hmacKey: algorithm.startsWith("HMAC") ? Buffer.from("the key of the HMAC") : null,
}));
