import { createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { HmacKey } from "../lib/hmac.ts";
import { invalidArgument } from "./errors.ts";

/** Every use of the root secret. A label is never used for two things and never renamed: what was made under it would be lost. */
export const SERVER_KEY_LABELS = [
  "secret-digest",
  "secret-tag",
  "page-token",
  "macaroon-root",
  "signing-key-wrap",
  "request-fingerprint",
] as const;

export type ServerKeyLabel = (typeof SERVER_KEY_LABELS)[number];

/** The root secrets as bytes of at least `ROOT_SECRET_MIN_LENGTH`: new work uses `current`, old work is still read under `retired`. */
export interface RootSecrets {
  readonly current: Uint8Array;
  readonly retired: readonly Uint8Array[];
}

export interface ServerKey {
  /** A public fingerprint, 16 hexadecimal digits: it may be stored beside what the key made, and tells nothing of the key. */
  readonly id: string;
  /** 32 bytes, made ready for OpenSSL once. Printing it shows nothing. */
  readonly secret: KeyObject;
}

/** The keys of one label: one for new work, and all those under which older work is accepted. */
export interface KeyRing {
  readonly current: ServerKey;
  readonly retired: readonly ServerKey[];
  /** The current key, then the retired ones. */
  readonly all: readonly ServerKey[];
  find(id: string): ServerKey | undefined;
}

export const ROOT_SECRET_MIN_LENGTH = 32;

/** Fewer different characters than this in 32 random hexadecimal digits is a chance of one in millions. */
const ROOT_SECRET_MIN_DISTINCT = 8;

const KEY_SIZE = 32;
const ID_SIZE = 8;

/**
 * A root secret from its text, which is taken as it is (hexadecimal and base64 are not decoded: their text has the same
 * entropy), but for white space around it. HKDF does not stretch, so it must be random, not a passphrase.
 * Throws `INVALID_ARGUMENT` naming `name`, without the text, if it is too short or too uniform to be random.
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

/** The server keys of one label. A root that is given twice counts once. Throws `RangeError` on a root below 32 bytes. */
export function deriveKeyRing(roots: RootSecrets, label: ServerKeyLabel): KeyRing {
  const current = deriveServerKey(roots.current, label);
  const byId = new Map([[current.id, current]]);
  for (const root of roots.retired) {
    const key = deriveServerKey(root, label);
    byId.set(key.id, byId.get(key.id) ?? key);
  }
  const all = [...byId.values()];
  return { current, retired: all.slice(1), all, find: (id) => byId.get(id) };
}

/** By their secrets, the keys that are in use. */
const hmacKeys = new WeakMap<KeyObject, HmacKey>();

/** HMAC-SHA-256 (RFC 2104) under a server key: 32 bytes. Text counts as UTF-8. */
export function hmacSha256({ secret }: ServerKey, ...parts: readonly (string | Uint8Array)[]): Buffer {
  let key = hmacKeys.get(secret);
  if (key === undefined) {
    key = new HmacKey(secret);
    hmacKeys.set(secret, key);
  }
  return key.digest(parts);
}

function deriveServerKey(root: Uint8Array, label: ServerKeyLabel): ServerKey {
  if (root.length < ROOT_SECRET_MIN_LENGTH) throw new RangeError("a root secret has at least 32 bytes");
  return {
    id: hkdfSha256(root, `keyhold/v1/id/${label}`, ID_SIZE).toString("hex"),
    secret: createSecretKey(hkdfSha256(root, `keyhold/v1/key/${label}`, KEY_SIZE)),
  };
}

/** HKDF-SHA-256 (RFC 5869) without salt (§3.1: the input is uniformly random already): `info` keeps the outputs apart. */
function hkdfSha256(secret: Uint8Array, info: string, size: number): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, new Uint8Array(), info, size));
}
