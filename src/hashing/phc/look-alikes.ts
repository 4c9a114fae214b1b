import { invalidPhc } from "./invalid-phc.ts";

interface LookAlike {
  readonly matches: RegExp;
  /** What it is, and what to do. */
  readonly reason: string;
}

const SALT_TO_BASE64 = "with the salt, which is text, and the hash in base64 without padding";
const NOT_SUPPORTED = "which is not supported: import these keys by raw_key when they are next sent, or replace them";
const PREHASHED = "which hashes a hash of the raw key and is not supported: issue new keys instead of these";

/** Formats that are mistaken for PHC, with how they are written as PHC if they can be. */
const LOOK_ALIKES: readonly LookAlike[] = [
  {
    matches: /^\$2x\$/,
    reason:
      "is a $2x$ hash of bcrypt, made by a version with a known bug, which does not distinguish some keys: issue new keys instead of these",
  },
  {
    matches: /^\$2\$/,
    reason:
      "is a $2$ hash of bcrypt, which does not hash the end of the key and is not supported: issue new keys instead of these",
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
      "is scrypt in the format of crypt: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, with salt and hash in base64 without padding",
  },
  { matches: /^\$[PH]\$/, reason: `is phpass, ${NOT_SUPPORTED}` },
  { matches: /^(?:\$bcrypt-sha256\$|bcrypt_sha256\$)/, reason: `is bcrypt of SHA-256, ${PREHASHED}` },
  {
    matches: /^bcrypt\$\$/,
    reason: "is bcrypt in the format of Django: remove bcrypt$ at its start, so that it begins with $2b$",
  },
  {
    matches: /^argon2\$argon2/,
    reason: "is Argon2 in the format of Django: remove argon2 at its start, so that it begins with $argon2id$",
  },
  {
    matches: /^pbkdf2_sha256\$/,
    reason: `is PBKDF2 in the format of Django: write $pbkdf2-sha256$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^pbkdf2_sha1\$/,
    reason: `is PBKDF2 in the format of Django: write $pbkdf2-sha1$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^pbkdf2:sha(?:1|256|512):\d+\$/,
    reason: `is PBKDF2 in the format of Werkzeug: write $pbkdf2-sha256$i=<iterations>$<salt>$<hash>, or sha512 or sha1, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^scrypt:\d+:\d+:\d+\$/,
    reason: `is scrypt in the format of Werkzeug: write $scrypt$ln=15,r=8,p=1$<salt>$<hash>, in which ln is the binary logarithm of 32768, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^scrypt\$/,
    reason: `is scrypt in the format of Django: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, ${SALT_TO_BASE64}`,
  },
  {
    matches: /^\{[\w-]+\}/,
    reason: "begins with the name of a scheme in braces: remove it, and write what follows in the format of PHC",
  },
  {
    matches: /^[0-9a-f]{32}:[0-9a-f]{128}$/i,
    reason:
      "is a salt and a hash in hexadecimal, as better-auth stores passwords, by scrypt with r=16, which is not supported. It stores API keys as SHA-256: import these with the algorithm SHA256 and the encoding BASE64URL",
  },
  {
    matches: /^[0-9a-f]{8,}[:.$][0-9a-f]{32,}$/i,
    reason:
      "is a salt and a hash in hexadecimal: write both in base64 without padding behind the parameters, such as $pbkdf2-sha256$i=<iterations>$<salt>$<hash> or $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>",
  },
  { matches: /^[\w+/=-]+$/, reason: "has no $: set algorithm, value and encoding for a hash without a salt" },
  { matches: /^\s|\s$/, reason: "has white space around it: remove it" },
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
