import { type SecretPrefix, secretHead } from "./format.ts";

const SHOWN = 4;
const RAW_KEY_MIN_LENGTH = 20;

/** Returns the hint of an issued secret, such as `kh_v1_…abcd`. The last four characters belong to the public checksum. */
export function issuedSecretHint(prefix: SecretPrefix, secret: string): string {
  return `${secretHead(prefix)}…${secret.slice(-SHOWN)}`;
}

/** Returns the hint of an imported key: `…` and its last four characters, or "" if it has fewer than 20 characters. */
export function rawKeyHint(rawKey: string): string {
  // A character is one or two code units, so a long text need not be split into characters.
  const isLong = rawKey.length >= 2 * RAW_KEY_MIN_LENGTH || [...rawKey].length >= RAW_KEY_MIN_LENGTH;
  return isLong ? `…${[...rawKey.slice(-2 * SHOWN)].slice(-SHOWN).join("")}` : "";
}
