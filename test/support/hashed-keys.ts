import { createHash, createHmac, scryptSync } from "node:crypto";
import { newRawKey, succeeded } from "./conformance.ts";
import { type Json, paths, type RestClient } from "./rest.ts";

/** Returns the fields of an import of a key of which only its SHA-256 is known. */
export function sha256Of(rawKey: string, prefix = "", suffix = ""): Json {
  const value = createHash("sha256").update(`${prefix}${rawKey}${suffix}`).digest("hex");
  return {
    raw_key_hash: {
      ...{ algorithm: "HASH_ALGORITHM_SHA256", value, encoding: "TEXT_ENCODING_HEX" },
      ...(prefix !== "" && { prefix }),
      ...(suffix !== "" && { suffix }),
    },
  };
}

/** Returns the same for HMAC-SHA-256 by a key that was created. */
export function hmacOf(rawKey: string, hmacKeyId: string, key: string): Json {
  const value = createHmac("sha256", key).update(rawKey).digest("base64");
  const hash = { algorithm: "HASH_ALGORITHM_HMAC_SHA256", value, encoding: "TEXT_ENCODING_BASE64" };
  return { raw_key_hash: { ...hash, hmac_key_id: hmacKeyId } };
}

/** Returns the same for scrypt, with the first characters of the raw key. */
export function scryptOf(rawKey: string, length = 20, logN = 10): Json {
  const salt = Buffer.from("a salt of bytes");
  const output = scryptSync(rawKey, salt, 32, { N: 2 ** logN, r: 8, p: 1, maxmem: 2 ** 26 });
  const [first, second] = [salt, output].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  const phc = `$scrypt$ln=${logN},r=8,p=1$${first}$${second}`;
  return { raw_key_hash: { phc }, lookup_prefix: rawKey.slice(0, length) };
}

export interface HashedKey {
  readonly rawKey: string;
  readonly keyId: string;
  readonly record: Json;
}

/** Imports a key of which only a hash is known: by default its SHA-256. */
export async function importHashed(
  rest: RestClient,
  fields: Json = {},
  rawKey = newRawKey(),
  hash = sha256Of(rawKey),
): Promise<HashedKey> {
  const body = { name: "a key", actor_id: "actor_1", ...hash, ...fields };
  const record = succeeded(await rest("POST", paths.imported, body));
  return { rawKey, keyId: record.key_id, record };
}

/** Resolves when the key is adopted, with its record. */
export async function adopted(rest: RestClient, keyId: string): Promise<Json> {
  for (;;) {
    const record = succeeded(await rest("GET", `${paths.imported}/${keyId}`));
    if (record.hash_algorithm === undefined) return record;
  }
}
