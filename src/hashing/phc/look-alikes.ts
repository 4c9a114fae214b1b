const SALT_TO_BASE64 = "with both the (text) salt and the hash in base64 without padding";
const NOT_SUPPORTED = "which is not supported: import each key by raw_key when a client next sends it, or replace it";
const PREHASHED = "which hashes a hash of the raw key and is not supported: replace these keys";

/** Formats that are mistaken for PHC: what each is, and what to do, such as how it is written as PHC. */
const LOOK_ALIKES: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [
    /^\$2x\$/,
    "is a bcrypt $2x$ hash; a bug in that version gives some different keys the same hash: replace these keys",
  ],
  [/^\$2\$/, "is a bcrypt $2$ hash, which omits the NUL after the key and is not supported: replace these keys"],
  [/^\$(?:1|apr1|md5)[$,]/, `is MD5-crypt, ${NOT_SUPPORTED}`],
  [
    /^\$5\$/,
    `is SHA-256-crypt, ${NOT_SUPPORTED}; PBKDF2 with SHA-256 is written $pbkdf2-sha256$i=<iterations>$<salt>$<hash>`,
  ],
  [
    /^\$6\$/,
    `is SHA-512-crypt, ${NOT_SUPPORTED}; PBKDF2 with SHA-512 is written $pbkdf2-sha512$i=<iterations>$<salt>$<hash>`,
  ],
  [/^\$(?:y|gy)\$/, `is yescrypt, ${NOT_SUPPORTED}`],
  [
    /^\$7\$/,
    "is scrypt in crypt(3) format: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, with salt and hash in base64 without padding",
  ],
  [/^\$[PH]\$/, `is phpass, ${NOT_SUPPORTED}`],
  [/^(?:\$bcrypt-sha256\$|bcrypt_sha256\$)/, `is bcrypt of SHA-256, ${PREHASHED}`],
  [/^bcrypt\$\$/, "is bcrypt in Django format: remove the leading bcrypt$, so that it begins with $2b$"],
  [/^argon2\$argon2/, "is Argon2 in Django format: remove the leading argon2, so that it begins with $argon2id$"],
  [
    /^pbkdf2_sha256\$/,
    `is PBKDF2 in Django format: write $pbkdf2-sha256$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`,
  ],
  [/^pbkdf2_sha1\$/, `is PBKDF2 in Django format: write $pbkdf2-sha1$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`],
  [
    /^pbkdf2:sha(?:1|256|512):\d+\$/,
    `is PBKDF2 in Werkzeug format: write $pbkdf2-<sha1, sha256 or sha512>$i=<iterations>$<salt>$<hash>, ${SALT_TO_BASE64}`,
  ],
  [
    /^scrypt:\d+:\d+:\d+\$/,
    `is scrypt in Werkzeug format: write $scrypt$ln=15,r=8,p=1$<salt>$<hash>, where ln is log2 of 32768, ${SALT_TO_BASE64}`,
  ],
  [/^scrypt\$/, `is scrypt in Django format: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, ${SALT_TO_BASE64}`],
  [/^\{[\w-]+\}/, "begins with a scheme name in braces: remove the name, and write the rest in PHC format"],
  [
    /^[0-9a-f]{32}:[0-9a-f]{128}$/i,
    "is a better-auth password hash (hexadecimal, scrypt with r=16), which is not supported. better-auth API keys are SHA-256: import these with the algorithm SHA256 and the encoding BASE64URL",
  ],
  [
    /^[0-9a-f]{8,}[:.$][0-9a-f]{32,}$/i,
    "is a salt and a hash in hexadecimal: write both in base64 without padding after the parameters, as in $pbkdf2-sha256$i=<iterations>$<salt>$<hash> or $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>",
  ],
  [/^[\w+/=-]+$/, "has no $: set algorithm, value and encoding for a hash without a salt"],
  [/^\s|\s$/, "remove the white space around it"],
  [/^\$argon2/i, "is an unknown variant of Argon2; allowed: $argon2id$, $argon2i$, $argon2d$"],
  [
    /^\$pbkdf2-/,
    "is PBKDF2 with a hash that is not supported; allowed: $pbkdf2-sha256$, $pbkdf2-sha512$, $pbkdf2-sha1$",
  ],
];

/** Returns what is wrong with text in a format that is mistaken for PHC; undefined for other text. */
export function mistakeInFormat(text: string): string | undefined {
  return LOOK_ALIKES.find(([pattern]) => pattern.test(text))?.[1];
}
