import { invalidPhc } from "./invalid-phc.ts";

interface LookAlike {
  readonly matches: RegExp;
  /** What it is, and what to do. */
  readonly reason: string;
}

const SALT_TO_BASE64 = "with both the (text) salt and the hash in base64 without padding";
const NOT_SUPPORTED = "which is not supported: import each key by raw_key when a client next sends it, or replace it";
const PREHASHED = "which hashes a hash of the raw key and is not supported: replace these keys";

/** Formats that are mistaken for PHC, with how they are written as PHC if they can be. */
const LOOK_ALIKES: readonly LookAlike[] = [
  {
    matches: /^\$2x\$/,
    reason: "is a bcrypt $2x$ hash; a bug in that version gives some different keys the same hash: replace these keys",
  },
  {
    matches: /^\$2\$/,
    reason: "is a bcrypt $2$ hash, which omits the NUL after the key and is not supported: replace these keys",
  },
  { matches: /^\$(?:1|apr1|md5)[$,]/, reason: `is MD5-crypt, ${NOT_SUPPORTED}` },
  {
    matches: /^\$5\$/,
    reason: `is SHA-256-crypt, ${NOT_SUPPORTED}; PBKDF2 with SHA-256 is written $pbkdf2-sha256$i=<iterations>$<salt>$<hash>`,
  },
  {
    matches: /^\$6\$/,
    reason: `is SHA-512-crypt, ${NOT_SUPPORTED}; PBKDF2 with SHA-512 is written $pbkdf2-sha512$i=<iterations>$<salt>$<hash>`,
  },
  { matches: /^\$(?:y|gy)\$/, reason: `is yescrypt, ${NOT_SUPPORTED}` },
  {
    matches: /^\$7\$/,
    reason:
      "is scrypt in crypt(3) format: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, with salt and hash in base64 without padding",
  },
  { matches: /^\$[PH]\$/, reason: `is phpass, ${NOT_SUPPORTED}` },
  { matches: /^(?:\$bcrypt-sha256\$|bcrypt_sha256\$)/, reason: `is bcrypt of SHA-256, ${PREHASHED}` },
  {
    matches: /^bcrypt\$\$/,
    reason: "is bcrypt in Django format: remove the leading bcrypt$, so that it begins with $2b$",
  },
  {
    matches: /^argon2\$argon2/,
    reason: "is Argon2 in Django format: remove the leading argon2, so that it begins with $argon2id$",
  },
  {
    matches: /^pbkdf2_sha256\$/,
    reason: `is PBKDF2 in Django format: write $pbkdf2-sha256$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^pbkdf2_sha1\$/,
    reason: `is PBKDF2 in Django format: write $pbkdf2-sha1$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^pbkdf2:sha(?:1|256|512):\d+\$/,
    reason: `is PBKDF2 in Werkzeug format: write $pbkdf2-<sha1, sha256 or sha512>$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^scrypt:\d+:\d+:\d+\$/,
    reason: `is scrypt in Werkzeug format: write $scrypt$ln=15,r=8,p=1$<salt>$<hash>, where ln is log2 of 32768, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^scrypt\$/,
    reason: `is scrypt in Django format: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^\{[\w-]+\}/,
    reason: "begins with a scheme name in braces: remove the name, and write the rest in PHC format",
  },
  {
    matches: /^[0-9a-f]{32}:[0-9a-f]{128}$/i,
    reason:
      "is a better-auth password hash (hexadecimal, scrypt with r=16), which is not supported. better-auth API keys are SHA-256: import these with the algorithm SHA256 and the encoding BASE64URL",
  },
  {
    matches: /^[0-9a-f]{8,}[:.$][0-9a-f]{32,}$/i,
    reason:
      "is a salt and a hash in hexadecimal: write both in base64 without padding after the parameters, as in $pbkdf2-sha256$i=<iterations>$<salt>$<hash> or $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>",
  },
  { matches: /^[\w+/=-]+$/, reason: "has no $: set algorithm, value and encoding for a hash without a salt" },
  { matches: /^\s|\s$/, reason: "remove the white space around it" },
  { matches: /^\$argon2/i, reason: "is an unknown variant of Argon2; allowed: $argon2id$, $argon2i$, $argon2d$" },
  {
    matches: /^\$pbkdf2-/,
    reason: "is PBKDF2 with a hash that is not supported; allowed: $pbkdf2-sha256$, $pbkdf2-sha512$, $pbkdf2-sha1$",
  },
];

/** Throws `INVALID_ARGUMENT` if text is in a format that is mistaken for PHC. */
export function rejectLookAlike(text: string): void {
  const found = LOOK_ALIKES.find(({ matches }) => matches.test(text));
  if (found !== undefined) throw invalidPhc(found.reason);
}
