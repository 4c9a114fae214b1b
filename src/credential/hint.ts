import { type SecretPrefix, secretHead } from "./format.ts";

const SHOWN = 4;
const RAW_KEY_MIN_LENGTH = 20;

/** What lets a person recognise a secret issued with this prefix: `kh_v1_…abcd`. The last four characters are of the public checksum. */
export function issuedSecretHint(prefix: SecretPrefix, secret: string): string {
  return `${secretHead(prefix)}…${secret.slice(-SHOWN)}`;
}

/** The hint of an imported key: `…abcd`, its last four characters if it has 20 or more, or else the empty string. */
export function rawKeyHint(rawKey: string): string {
  // A character has one code unit or two: a raw key of so many units needs no counting, and its end is within its last ones.
  const isLong = rawKey.length >= 2 * RAW_KEY_MIN_LENGTH || [...rawKey].length >= RAW_KEY_MIN_LENGTH;
  return isLong ? `…${[...rawKey.slice(-2 * SHOWN)].slice(-SHOWN).join("")}` : "";
}
