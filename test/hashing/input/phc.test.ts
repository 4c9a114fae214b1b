import { expect, test } from "vitest";
import { parseRawKeyHash } from "../../../src/hashing/input/raw-key-hash.ts";
import { parseStoredParameters } from "../../../src/hashing/phc/stored-parameters.ts";
import { violationsOf as allViolationsOf } from "./violations.ts";

const violationsOf = (phc: string) => allViolationsOf(() => parseRawKeyHash({ phc }));

/** Characters of a hash in the snapshot. */
const MAX_SHOWN = 120;

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

/** What is no hash, or one that is not supported: the snapshot has the violation of each, and so what to do. */
const REJECTED = [
  `$2b$03$${BCRYPT}`,
  `$2b$13$${BCRYPT}`,
  `$2b$12$${BCRYPT.slice(1)}`,
  `$2b$12$${BCRYPT.slice(1)}+`,
  `$2b$12$${BCRYPT.slice(0, -1)}b`,
  `$2x$12$${BCRYPT}`,
  `$2$12$${BCRYPT}`,
  `$argon2id$v=16$m=1024,t=1,p=1$${SALT}$${HASH}`,
  `$argon2id$m=1024,t=1,p=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=65537,t=1,p=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1023,t=1,p=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=5,p=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=0,p=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=5$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1,m=1024$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1,data=AAAA$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1,x=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=01024,t=1,p=1$${SALT}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH}$x`,
  `$argon2id$v=19$m=1024,t=1,p=1$c2FsdA$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${"A".repeat(87)}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${"A".repeat(20)}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${"A".repeat(87)}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}=$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH}=`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$-${HASH.slice(1)}`,
  `$argon2id$v=19$m=1024,t=1,p=1$.${SALT.slice(1)}$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH.slice(2)}`,
  `$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH.slice(1)}B`,
  `$argon2id$v=19$m=1024,t=1,p=1$sält-sält$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1$sält!$${HASH}`,
  `$argon2id$v=19$m=1024,t=1,p=1$$${HASH}`,
  `$argon2x$v=19$m=1024,t=1,p=1$${SALT}$${HASH}`,
  `$scrypt$ln=16,r=8,p=1$${SALT}$${HASH}`,
  `$scrypt$ln=9,r=8,p=1$${SALT}$${HASH}`,
  `$scrypt$ln=14,r=16,p=1$${SALT}$${HASH}`,
  `$scrypt$ln=14,r=8,p=2$${SALT}$${HASH}`,
  `$scrypt$n=16384,r=8,p=1$${SALT}$${HASH}`,
  `$pbkdf2-sha256$i=600001$${SALT}$${HASH}`,
  `$pbkdf2-sha256$i=999$${SALT}$${HASH}`,
  `$pbkdf2-sha256$999$${SALT}$${HASH}`,
  `$pbkdf2-sha256$i=1000,l=31$${SALT}$${HASH}`,
  `$pbkdf2-sha256$29000$${SALT}$+${HASH.slice(1)}`,
  `$pbkdf2-sha384$i=1000$${SALT}$${HASH}`,
  // Formats that are mistaken for PHC.
  "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
  "$apr1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
  "$5$rounds=5000$saltsalt$x",
  "$6$saltsalt$x",
  "$y$j9T$salt$x",
  "$7$C6..../....salt$x",
  "$P$B12345678x",
  "$bcrypt-sha256$v=2,t=2b,r=12$x$y",
  "bcrypt_sha256$$2b$12$x",
  `bcrypt$$2b$12$${BCRYPT}`,
  `argon2$argon2id$v=19$m=1024,t=1,p=1$${SALT}$${HASH}`,
  `pbkdf2_sha256$600000$salt$${HASH}=`,
  `pbkdf2_sha1$600000$salt$${HASH}=`,
  "pbkdf2:sha256:600000$salt$00ff",
  "scrypt:32768:8:1$salt$00ff",
  "scrypt$salt$16384$8$1$x",
  "{PBKDF2-SHA256}29000$x$y",
  `${"0f".repeat(16)}:${"0f".repeat(64)}`,
  `${"0f".repeat(8)}:${"0f".repeat(32)}`,
  "0f".repeat(32),
  ` $2b$12$${BCRYPT}`,
  "$unknown$x",
  "x".repeat(513),
];

test("other texts are rejected with the reason, and with what to do", async () => {
  const lines = REJECTED.map((phc) => `${phc.slice(0, MAX_SHOWN)}\n  ${violationsOf(phc).join("\n  ")}\n`);
  await expect(lines.join("")).toMatchFileSnapshot("rejected-phc.txt");
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
