import { createHmac, createPublicKey } from "node:crypto";
import type { Seeded } from "../../support/seeded.ts";
import type { Credentials } from "../case-context.ts";
import { chooseDamage } from "../damage.ts";

/** A credential that must be rejected, and how it was altered. */
export interface Forgery {
  readonly kind: string;
  readonly text: string;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Alterations of any text. The result is different, printable ASCII. */
const TEXT_CHANGES: Readonly<Record<string, (text: string, random: Seeded) => string>> = {
  "another character": (text, random) => {
    const place = random.below(text.length);
    return `${text.slice(0, place)}${random.pick([...DIGITS])}${text.slice(place + 1)}`;
  },
  "a character of another case": (text, random) => {
    const place = random.below(text.length);
    const character = text.charAt(place);
    const other = character === character.toUpperCase() ? character.toLowerCase() : character.toUpperCase();
    return `${text.slice(0, place)}${other}${text.slice(place + 1)}`;
  },
  "two characters swapped": (text, random) => {
    const place = random.below(text.length - 1);
    return `${text.slice(0, place)}${text.charAt(place + 1)}${text.charAt(place)}${text.slice(place + 2)}`;
  },
  "a cut": (text, random) => text.slice(0, random.below(text.length)),
  "a missing prefix": (text, random) => text.slice(1 + random.below(text.length - 1)),
  "a suffix": (text, random) => text + random.pick(["=", "==", "A", ".", "-", "0", "%00", "_", "~"]),
  "a prefix": (text, random) => random.pick(["=", "A", ".", "Bearer", "kh_", "_", "kh_v1_"]) + text,
  "the text twice": (text) => text + text,
  reversed: (text) => [...text].reverse().join(""),
  "a character left out": (text, random) => {
    const place = random.below(text.length);
    return text.slice(0, place) + text.slice(place + 1);
  },
};

interface Jwt {
  readonly header: Record<string, unknown>;
  readonly claims: Record<string, unknown>;
  readonly signature: string;
}

/** Alterations of a JWT (RFC 7519) without the signing key. */
const JWT_CHANGES: Readonly<Record<string, (jwt: Jwt, random: Seeded) => string>> = {
  "no algorithm": ({ claims }, random) =>
    joined({ alg: random.pick(["none", "None", "NONE", ""]), typ: "JWT" }, claims, random.pick(["", "AAAA"])),
  "another algorithm": ({ header, claims, signature }, random) =>
    joined({ ...header, alg: random.pick(["HS256", "ES256", "RS256", "PS512", "EdDSA ", "eddsa"]) }, claims, signature),
  "a symmetric signature by a public key": ({ header, claims }) => {
    const { kid } = header;
    const unsigned = joined({ ...header, alg: "HS256" }, claims, "").slice(0, -1);
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: "A".repeat(43) }, format: "jwk" });
    const secret = Buffer.concat([key.export({ format: "der", type: "spki" }), Buffer.from(String(kid))]);
    return `${unsigned}.${createHmac("sha256", secret).update(unsigned).digest("base64url")}`;
  },
  "another key": ({ header, claims, signature }, random) =>
    joined(
      { ...header, kid: random.pick(["", "other", "../../dev/null", "' OR 1=1", "a".repeat(32)]) },
      claims,
      signature,
    ),
  "an embedded key": ({ header, claims, signature }) =>
    joined(
      { ...header, jwk: { kty: "OKP", crv: "Ed25519", x: "A".repeat(43) }, jku: "http://127.0.0.1:1/" },
      claims,
      signature,
    ),
  "critical fields": ({ header, claims, signature }) =>
    joined({ ...header, crit: ["exp"], b64: false }, claims, signature),
  "other claims": ({ header, claims, signature }, random) => {
    const change: Record<string, unknown> = random.pick([
      { exp: 9_999_999_999 },
      { scope: "keyhold:admin" },
      { sub: "someone else" },
      { key_id: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10" },
      { iss: "elsewhere" },
      { nbf: 0 },
    ]);
    return joined(header, { ...claims, ...change }, signature);
  },
  "invalid claims": ({ header, signature }, random) =>
    [encoded(header), random.pick(["", "e30", "bnVsbA", "W10", "!!", "eyJ"]), signature].join("."),
  "a signature of zeros": ({ header, claims }) => joined(header, claims, Buffer.alloc(64).toString("base64url")),
  "more parts": (jwt, random) => `${joined(jwt.header, jwt.claims, jwt.signature)}${random.pick([".", ".a", ".a.b"])}`,
};

function joined(header: object, claims: object, signature: string): string {
  return [encoded(header), encoded(claims), signature].join(".");
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function jwtOf(text: string): Jwt {
  const [header = "", claims = "", signature = ""] = text.split(".");
  const decode = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  return { header: decode(header), claims: decode(claims), signature };
}

/** Alterations of the bytes of a macaroon without its root key. */
function damagedMacaroon(text: string, random: Seeded): string {
  const bytes = Buffer.from(text, "base64url");
  if (random.below(3) > 0) return chooseDamage(random)(bytes).toString("base64url");
  // Inserts a caveat before the signature, which does not cover it (libmacaroons V2: EOS, 6, length 32, signature).
  const end = bytes.length - 35;
  const caveat = Buffer.from("scope = keyhold:admin");
  const packet = Buffer.concat([Buffer.of(2, caveat.length), caveat, Buffer.of(0)]);
  return Buffer.concat([bytes.subarray(0, end), packet, bytes.subarray(end)]).toString("base64url");
}

/** Texts that are not credentials. */
const NOT_CREDENTIALS: readonly string[] = [
  "a",
  "null",
  "undefined",
  "{}",
  "..",
  "...",
  "a.b.c",
  "kh_v1_",
  "kh_v2_AAAA",
  "eyJhbGciOiJub25lIn0.e30.",
  "' OR '1'='1",
  "%",
  "*",
  "A".repeat(8_192),
  "A".repeat(8_193),
  "AgEA",
  "Ag",
  "AgEHa2V5aG9sZA",
];

/** Chooses an invalid credential, derived from valid ones. */
export function chooseForgery(random: Seeded, { issued, imported, jwt, macaroon }: Credentials): Forgery {
  const family = random.below(10);
  if (family === 0) return { kind: "no credential", text: random.pick(NOT_CREDENTIALS) };
  if (family < 4) {
    const [kind, change] = random.pick(Object.entries(JWT_CHANGES));
    return { kind: `jwt, ${kind}`, text: change(jwtOf(jwt), random) };
  }
  if (family < 6) return { kind: "macaroon, other bytes", text: damagedMacaroon(macaroon, random) };
  const [name, text] = random.pick(Object.entries({ issued, imported, jwt, macaroon }));
  const [kind, change] = random.pick(Object.entries(TEXT_CHANGES));
  return { kind: `${name}, ${kind}`, text: change(text, random) };
}
