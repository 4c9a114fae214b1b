import { createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { HmacKey } from "../lib/hmac.ts";
import { memoizeByIdentity } from "../lib/memoize.ts";
import { invalidArgument } from "./errors.ts";

/** The uses of a root secret. A label must never be reused or renamed: data protected under it would become unreadable. */
export const SERVER_KEY_LABELS = [
  "secret-digest",
  "secret-tag",
  "page-token",
  "macaroon-root",
  "signing-key-wrap",
  "request-fingerprint",
  "hash-scheme-wrap",
  "webhook-secret-wrap",
  "console-session",
] as const;

export type ServerKeyLabel = (typeof SERVER_KEY_LABELS)[number];

/** Root secrets of at least `ROOT_SECRET_MIN_LENGTH` bytes each. New data uses `current`; `retired` can still read older data. */
export interface RootSecrets {
  readonly current: Uint8Array;
  readonly retired: readonly Uint8Array[];
}

export interface ServerKey {
  /** A public fingerprint of 16 hexadecimal digits, stored next to the data. It reveals nothing about the key. */
  readonly id: string;
  /** 32 bytes. A `KeyObject` never prints its value. */
  readonly secret: KeyObject;
}

/** The keys of one label: `current` for new data, `all` to read older data. */
export interface KeyRing {
  readonly current: ServerKey;
  /** The current key, then the others: retired ones and those not yet promoted. */
  readonly all: readonly ServerKey[];
  find(id: string): ServerKey | undefined;
}

export const ROOT_SECRET_MIN_LENGTH = 32;

/** 32 random hexadecimal digits have fewer distinct characters than this once in millions. */
const ROOT_SECRET_MIN_DISTINCT = 8;

const KEY_SIZE = 32;
const ID_SIZE = 8;

/**
 * Parses a root secret and returns its bytes. White space around it is trimmed. Hexadecimal and base64 are not decoded, which preserves
 * their entropy. The secret must be random: HKDF does not stretch a passphrase.
 *
 * @throws `INVALID_ARGUMENT` naming `name`, never the secret, if it is too short or has too few distinct characters.
 */
export function parseRootSecret(text: string, name = "KEYHOLD_ROOT_SECRET"): Uint8Array {
  const secret = text.trim();
  const characters = [...secret];
  if (characters.length < ROOT_SECRET_MIN_LENGTH) {
    throw invalidArgument(name, `must have at least ${ROOT_SECRET_MIN_LENGTH} random characters`);
  }
  if (new Set(characters).size < ROOT_SECRET_MIN_DISTINCT) {
    throw invalidArgument(name, `must be random: it has fewer than ${ROOT_SECRET_MIN_DISTINCT} different characters`);
  }
  return Buffer.from(secret, "utf8");
}

/** Derives the keys of one label. Duplicate roots yield one key. Throws `RangeError` on a root below 32 bytes. */
export function deriveKeyRing(roots: RootSecrets, label: ServerKeyLabel): KeyRing {
  const current = deriveServerKey(roots.current, label);
  const retired = roots.retired.map((root) => deriveServerKey(root, label)).filter(({ id }) => id !== current.id);
  const byId = new Map([current, ...retired].map((key) => [key.id, key]));
  return { current, all: [...byId.values()], find: (id) => byId.get(id) };
}

/** `HmacKey`s by secret, so that each is prepared once. */
const hmacKeyOf = memoizeByIdentity((secret: KeyObject) => new HmacKey(secret));

/** Returns HMAC-SHA-256 (RFC 2104) of the concatenated parts under a server key: 32 bytes. Strings are encoded as UTF-8. */
export function hmacSha256({ secret }: ServerKey, ...parts: readonly (string | Uint8Array)[]): Buffer {
  return hmacKeyOf(secret).digest(parts);
}

function deriveServerKey(root: Uint8Array, label: ServerKeyLabel): ServerKey {
  if (root.length < ROOT_SECRET_MIN_LENGTH) throw new RangeError("a root secret must have at least 32 bytes");
  return {
    id: hkdfSha256(root, `keyhold/v1/id/${label}`, ID_SIZE).toString("hex"),
    secret: createSecretKey(hkdfSha256(root, `keyhold/v1/key/${label}`, KEY_SIZE)),
  };
}

/** Returns HKDF-SHA-256 (RFC 5869) without salt, since the input is uniformly random (§3.1). `info` separates the outputs. */
function hkdfSha256(secret: Uint8Array, info: string, size: number): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, new Uint8Array(), info, size));
}
