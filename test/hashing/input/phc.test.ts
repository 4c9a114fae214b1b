import { describe, expect, test } from "vitest";
import { parseRawKeyHash } from "../../../src/hashing/input/raw-key-hash.ts";
import { parseStoredParameters } from "../../../src/hashing/phc/stored-parameters.ts";
import { violationsOf as allViolationsOf } from "./violations.ts";

const violationsOf = (phc: string) => allViolationsOf(() => parseRawKeyHash({ phc }));

const SALT = "c2FsdHNhbHQ";
const HASH = "A".repeat(43);
const BCRYPT = `${"a".repeat(21)}u${"a".repeat(30)}u`;

const accepted: readonly [string, string, number][] = [
  [`$2a$04$${BCRYPT}`, `$2b$04$${"a".repeat(21)}u`, 23],
  [`$2b$12$${BCRYPT}`, `$2b$12$${"a".repeat(21)}u`, 23],
  [`$2y$10$${BCRYPT}`, `$2b$10$${"a".repeat(21)}u`, 23],
  // The last digit of the salt has unused bits, which bcrypt ignores.
  [`$2y$10$${"a".repeat(22)}${"a".repeat(30)}u`, `$2b$10$${"a".repeat(21)}O`, 23],
  [`$argon2id$v=19$m=65536,t=4,p=4$${SALT}$${HASH}`, `$argon2id$v=19$m=65536,t=4,p=4,l=32$${SALT}`, 32],
  [`$argon2i$v=19$t=1,p=1,m=1024$${SALT}$${HASH}`, `$argon2i$v=19$m=1024,t=1,p=1,l=32$${SALT}`, 32],
  [`$argon2d$v=19$m=1024,t=1,p=1$${SALT}$${"A".repeat(22)}`, `$argon2d$v=19$m=1024,t=1,p=1,l=16$${SALT}`, 16],
  [`$scrypt$ln=15,r=8,p=1$${SALT}$${"A".repeat(86)}`, `$scrypt$ln=15,r=8,p=1,l=64$${SALT}`, 64],
  [`$scrypt$ln=10,r=8,p=1$${"A".repeat(86)}$${HASH}`, `$scrypt$ln=10,r=8,p=1,l=32$${"A".repeat(86)}`, 32],
  [`$pbkdf2-sha256$i=600000$${SALT}$${HASH}`, `$pbkdf2-sha256$i=600000,l=32$${SALT}`, 32],
  [`$pbkdf2-sha256$i=1000,l=32$${SALT}$${HASH}`, `$pbkdf2-sha256$i=1000,l=32$${SALT}`, 32],
  [`$pbkdf2-sha512$i=1000$${SALT}$${HASH}`, `$pbkdf2-sha512$i=1000,l=32$${SALT}`, 32],
  // More than one block of HMAC: the first one is verified.
  [`$pbkdf2-sha1$i=1000$${SALT}$${HASH}`, `$pbkdf2-sha1$i=1000,l=20$${SALT}`, 20],
  [`$pbkdf2-sha256$i=1000$${SALT}$${"A".repeat(342)}`, `$pbkdf2-sha256$i=1000,l=32$${SALT}`, 32],
  // The formats of passlib.
  [`$pbkdf2-sha256$29000$..........w$.${HASH.slice(1)}`, "$pbkdf2-sha256$i=29000,l=32$++++++++++w", 32],
  [`$pbkdf2$29000$${SALT}$${"A".repeat(27)}`, `$pbkdf2-sha1$i=29000,l=20$${SALT}`, 20],
];

test.each(accepted)("%s is %s", (phc, parameters, size) => {
  const hash = parseRawKeyHash({ phc });
  expect([hash.parameters, hash.output.length]).toEqual([parameters, size]);
  // What is stored can be read again.
  expect(() => parseStoredParameters(parameters)).not.toThrow();
});

const CUT = "is it cut off?";

const refused: readonly [string, string][] = [
  // bcrypt
  [`$2b$03$${BCRYPT}`, "the cost of bcrypt is 3; it must be 4 to 12"],
  [`$2b$13$${BCRYPT}`, "the cost of bcrypt is 13; it must be 4 to 12"],
  [
    `$2b$12$${BCRYPT.slice(1)}`,
    "is not bcrypt, such as $2b$12$ and 53 digits of ./A-Za-z0-9: it has 59 characters, but should have 60",
  ],
  [`$2b$12$${BCRYPT.slice(1)}+`, "is not bcrypt, such as $2b$12$ and 53 digits of ./A-Za-z0-9"],
  [`$2b$12$${BCRYPT.slice(0, -1)}b`, "is not bcrypt: unused bits at its end are not zero; is it cut off or mistyped?"],
  [
    `$2x$12$${BCRYPT}`,
    "is a $2x$ hash of bcrypt, made by a version with a known bug, which does not distinguish some keys: issue new keys instead of these",
  ],
  [
    `$2$12$${BCRYPT}`,
    "is a $2$ hash of bcrypt, which does not hash the end of the key and is not supported: issue new keys instead of these",
  ],
  // Argon2
  [`$argon2id$v=16$m=1024,t=1,p=1$${SALT}$${HASH}`, "the version of Argon2 is 16; only v=19 can be computed"],
  [`$argon2id$m=1024,t=1,p=1$${SALT}$${HASH}`, "the version of Argon2 is 16, the default; only v=19 can be computed"],
  [`$argon2id$v=19$m=65537,t=1,p=1$${SALT}$${HASH}`, "m (KiB of memory) is 65537; it must be 1024 to 65536"],
  [`$argon2id$v=19$m=1023,t=1,p=1$${SALT}$${HASH}`, "m (KiB of memory) is 1023; it must be 1024 to 65536"],
  [`$argon2id$v=19$m=1024,t=5,p=1$${SALT}$${HASH}`, "t (passes) is 5; it must be 1 to 4"],
  [`$argon2id$v=19$m=1024,t=0,p=1$${SALT}$${HASH}`, "t (passes) is 0; it must be 1 to 4"],
  [`$argon2id$v=19$m=1024,t=1,p=5$${SALT}$${HASH}`, "p (parallelism) is 5; it must be 1 to 4"],
  [`$argon2id$v=19$m=1024,t=1$${SALT}$${HASH}`, "requires the parameter p"],
  [`$argon2id$v=19$m=1024,t=1,p=1,m=1024$${SALT}$${HASH}`, "has the parameter m twice"],
  [
    `$argon2id$v=19$m=1024,t=1,p=1,data=AAAA$${SALT}$${HASH}`,
    "has a parameter that is not of the form name=number; allowed: m, t, p",
  ],
  [`$argon2id$v=19$m=1024,t=1,p=1,x=1$${SALT}$${HASH}`, "has the unknown parameter x; allowed: m, t, p"],
  [
    `$argon2id$v=19$m=01024,t=1,p=1$${SALT}$${HASH}`,
    "has a parameter that is not of the form name=number; allowed: m, t, p",
  ],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$${SALT}`,
    `must have parameters, salt and hash, as in $argon2id$m=…,t=…,p=…$<salt>$<hash>: ${CUT}`,
  ],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH}$x`,
    `must have parameters, salt and hash, as in $argon2id$m=…,t=…,p=…$<salt>$<hash>: ${CUT}`,
  ],
  [`$argon2id$v=19$m=1024,t=1,p=1$c2FsdA$${HASH}`, "the number of bytes of the salt is 4; it must be 8 to 64"],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$${"A".repeat(87)}$${HASH}`,
    "the number of bytes of the salt is 65; it must be 8 to 64",
  ],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${"A".repeat(20)}`,
    "the number of bytes of the hash is 15; it must be 16 to 64",
  ],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${"A".repeat(87)}`,
    "the number of bytes of the hash is 65; it must be 16 to 64",
  ],
  [`$argon2id$v=19$m=1024,t=1,p=1$${SALT}=$${HASH}`, "the salt has padding: remove the = at its end"],
  [`$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH}=`, "the hash has padding: remove the = at its end"],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$-${HASH.slice(1)}`,
    "the hash has characters of base64url, - or _: write it in base64, with + and /",
  ],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$.${SALT.slice(1)}$${HASH}`,
    "the salt has characters of another alphabet, such as .: write it in base64, with + and /",
  ],
  [`$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH.slice(2)}`, `the hash is not canonical base64: ${CUT}`],
  [`$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH.slice(1)}B`, `the hash is not canonical base64: ${CUT}`],
  [
    `$argon2id$v=19$m=1024,t=1,p=1$sält-sält$${HASH}`,
    "the salt has characters of base64url, - or _: write it in base64, with + and /",
  ],
  [`$argon2id$v=19$m=1024,t=1,p=1$sält!$${HASH}`, "the salt is not base64"],
  [`$argon2id$v=19$m=1024,t=1,p=1$$${HASH}`, "the salt is empty"],
  [
    `$argon2x$v=19$m=1024,t=1,p=1$${SALT}$${HASH}`,
    "is an unknown variant of Argon2; allowed: $argon2id$, $argon2i$, $argon2d$",
  ],
  // scrypt
  [`$scrypt$ln=16,r=8,p=1$${SALT}$${HASH}`, "ln (the binary logarithm of N) is 16; it must be 10 to 15"],
  [`$scrypt$ln=9,r=8,p=1$${SALT}$${HASH}`, "ln (the binary logarithm of N) is 9; it must be 10 to 15"],
  [`$scrypt$ln=14,r=16,p=1$${SALT}$${HASH}`, "r (block size) is 16; it must be 8"],
  [`$scrypt$ln=14,r=8,p=2$${SALT}$${HASH}`, "p (parallelism) is 2; it must be 1"],
  [`$scrypt$n=16384,r=8,p=1$${SALT}$${HASH}`, "has the unknown parameter n; allowed: ln, r, p"],
  // PBKDF2
  [`$pbkdf2-sha256$i=600001$${SALT}$${HASH}`, "i (iterations) is 600001; it must be 1000 to 600000"],
  [`$pbkdf2-sha256$i=999$${SALT}$${HASH}`, "i (iterations) is 999; it must be 1000 to 600000"],
  [`$pbkdf2-sha256$999$${SALT}$${HASH}`, "i (iterations) is 999; it must be 1000 to 600000"],
  [`$pbkdf2-sha256$i=1000,l=31$${SALT}$${HASH}`, `l is 31, but the hash has 32 bytes: ${CUT}`],
  [
    `$pbkdf2-sha256$29000$${SALT}$+${HASH.slice(1)}`,
    "has the + of base64, but no i=: write $pbkdf2-sha256$i=29000$<salt>$<hash>",
  ],
  [
    `$pbkdf2-sha384$i=1000$${SALT}$${HASH}`,
    "is PBKDF2 with a hash that is not supported; allowed: $pbkdf2-sha256$, $pbkdf2-sha512$, $pbkdf2-sha1$",
  ],
];

test.each(refused)("%s: %s", (phc, reason) => {
  expect(violationsOf(phc)).toEqual([`raw_key_hash.phc: ${reason}`]);
});

describe("a format that is mistaken for PHC is refused with what to do", () => {
  const SALT_AND_HASH = "with the salt, which is text, and the hash in base64 without padding";
  const NOT_SUPPORTED = "which is not supported: import these keys by raw_key when they are next sent, or replace them";
  const formats: readonly [string, string][] = [
    ["$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/", `is MD5-crypt, ${NOT_SUPPORTED}`],
    ["$apr1$saltsalt$qjXMvbEw8oaL.CzflDtaK/", `is MD5-crypt, ${NOT_SUPPORTED}`],
    [
      "$5$rounds=5000$saltsalt$x",
      `is SHA-256-crypt, ${NOT_SUPPORTED}; PBKDF2 with SHA-256 is written $pbkdf2-sha256$i=<iterations>$<salt>$<hash>`,
    ],
    [
      "$6$saltsalt$x",
      `is SHA-512-crypt, ${NOT_SUPPORTED}; PBKDF2 with SHA-512 is written $pbkdf2-sha512$i=<iterations>$<salt>$<hash>`,
    ],
    ["$y$j9T$salt$x", `is yescrypt, ${NOT_SUPPORTED}`],
    [
      "$7$C6..../....salt$x",
      "is scrypt in the format of crypt: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, with salt and hash in base64 without padding",
    ],
    ["$P$B12345678x", `is phpass, ${NOT_SUPPORTED}`],
    [
      "$bcrypt-sha256$v=2,t=2b,r=12$x$y",
      "is bcrypt of SHA-256, which hashes a hash of the raw key and is not supported: issue new keys instead of these",
    ],
    [
      "bcrypt_sha256$$2b$12$x",
      "is bcrypt of SHA-256, which hashes a hash of the raw key and is not supported: issue new keys instead of these",
    ],
    [
      `bcrypt$$2b$12$${BCRYPT}`,
      "is bcrypt in the format of Django: remove bcrypt$ at its start, so that it begins with $2b$",
    ],
    [
      `argon2$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH}`,
      "is Argon2 in the format of Django: remove argon2 at its start, so that it begins with $argon2id$",
    ],
    [
      `pbkdf2_sha256$600000$salt$${HASH}=`,
      `is PBKDF2 in the format of Django: write $pbkdf2-sha256$i=<iterations>$<salt>$<hash>, ${SALT_AND_HASH}`,
    ],
    [
      `pbkdf2_sha1$600000$salt$${HASH}=`,
      `is PBKDF2 in the format of Django: write $pbkdf2-sha1$i=<iterations>$<salt>$<hash>, ${SALT_AND_HASH}`,
    ],
    [
      "pbkdf2:sha256:600000$salt$00ff",
      `is PBKDF2 in the format of Werkzeug: write $pbkdf2-sha256$i=<iterations>$<salt>$<hash>, or sha512 or sha1, ${SALT_AND_HASH}`,
    ],
    [
      "scrypt:32768:8:1$salt$00ff",
      `is scrypt in the format of Werkzeug: write $scrypt$ln=15,r=8,p=1$<salt>$<hash>, in which ln is the binary logarithm of 32768, ${SALT_AND_HASH}`,
    ],
    [
      "scrypt$salt$16384$8$1$x",
      `is scrypt in the format of Django: write $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>, ${SALT_AND_HASH}`,
    ],
    [
      "{PBKDF2-SHA256}29000$x$y",
      "begins with the name of a scheme in braces: remove it, and write what follows in the format of PHC",
    ],
    [
      `${"0f".repeat(16)}:${"0f".repeat(64)}`,
      "is a salt and a hash in hexadecimal, as better-auth stores passwords, by scrypt with r=16, which is not supported. It stores API keys as SHA-256: import these with the algorithm SHA256 and the encoding BASE64URL",
    ],
    [
      `${"0f".repeat(8)}:${"0f".repeat(32)}`,
      "is a salt and a hash in hexadecimal: write both in base64 without padding behind the parameters, such as $pbkdf2-sha256$i=<iterations>$<salt>$<hash> or $scrypt$ln=<log2 of N>,r=8,p=1$<salt>$<hash>",
    ],
    ["0f".repeat(32), "has no $: set algorithm, value and encoding for a hash without a salt"],
    [` $2b$12$${BCRYPT}`, "has white space around it: remove it"],
    [
      "$unknown$x",
      "has an unsupported format; it must begin with one of: $2a$, $2b$, $2y$, $argon2id$, $argon2i$, $argon2d$, $scrypt$, $pbkdf2-sha256$, $pbkdf2-sha512$, $pbkdf2-sha1$",
    ],
    ["x".repeat(513), "has 513 characters, but at most 512 are possible"],
  ];
  test.each(formats)("%s", (phc, reason) => {
    expect(violationsOf(phc)).toEqual([`raw_key_hash.phc: ${reason}`]);
  });
});

test.each([
  "",
  "$2b$04$",
  `$2a$04$${"a".repeat(21)}u`,
  `$2b$04$${"a".repeat(22)}`,
  `$argon2id$v=16$m=1024,t=1,p=1,l=32$${SALT}`,
  `$argon2id$v=19$m=01024,t=1,p=1,l=32$${SALT}`,
  `$scrypt$ln=15,r=8,p=1$${SALT}`,
  `$pbkdf2-sha256$i=1000,l=32$${SALT}=`,
  `$pbkdf2-sha256$i=1000,l=32$${SALT}$x`,
])("stored parameters that are not canonical are refused: %s", (text) => {
  expect(() => parseStoredParameters(text)).toThrow("stored hash parameters are malformed");
});
