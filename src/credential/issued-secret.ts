import { stringify as uuidText } from "uuid";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import { hmacSha256 } from "../domain/server-keys.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { Random } from "../lib/random.ts";
import {
  formatSecret,
  mistakeInSecret,
  PAYLOAD_SIZE,
  parseSecretFormat,
  type SecretFormat,
  type SecretPrefix,
} from "./format.ts";
import { mistakeIn } from "./mistakes.ts";

/** The payload of an issued secret: key id (16 bytes) ‖ random (32 bytes) ‖ tag (16 bytes). */
const KEY_ID_SIZE = 16;
const RANDOM_SIZE = 32;
const TAGGED_SIZE = KEY_ID_SIZE + RANDOM_SIZE;
const TAG_SIZE = PAYLOAD_SIZE - TAGGED_SIZE;

export interface IssueSecretInput {
  readonly prefix: SecretPrefix;
  /** A UUID. */
  readonly keyId: string;
  readonly random: Random;
  /** The ring of "secret-tag". */
  readonly tagKeys: KeyRing;
}

export type ParsedSecret =
  | {
      readonly ok: true;
      readonly prefix: SecretPrefix;
      /** A UUID in lower case. */
      readonly keyId: string;
    }
  | { readonly ok: false; readonly reason: "INVALID_FORMAT" | "SIGNATURE_INVALID"; readonly message: string };

/** Returns a new secret for a key, with 256 random bits. Throws `TypeError` if `keyId` is not a UUID. */
export function issueSecret({ prefix, keyId, random, tagKeys }: IssueSecretInput): string {
  const tagged = Buffer.concat([keyIdBytes(keyId), random.bytes(RANDOM_SIZE)], TAGGED_SIZE);
  return formatSecret({ prefix, payload: Buffer.concat([tagged, secretTag(tagKeys.current, prefix, tagged)]) });
}

/**
 * Parses an issued secret and verifies its tag, without the database: a forged or mistyped secret costs no lookup. Whether it is a current
 * secret of the key must be checked by its digest. Any prefix is accepted, since the configured one may have changed.
 */
export function parseSecret(text: string, tagKeys: KeyRing): ParsedSecret {
  const format = parseSecretFormat(text);
  if (!format) {
    const message = `malformed secret; the credential ${mistakeIn(text) ?? mistakeInSecret(text)}`;
    return { ok: false, reason: "INVALID_FORMAT", message };
  }
  if (!isTagged(format, tagKeys)) {
    return { ok: false, reason: "SIGNATURE_INVALID", message: "the secret was not issued by this service" };
  }
  return { ok: true, prefix: format.prefix, keyId: uuidText(format.payload.subarray(0, KEY_ID_SIZE)) };
}

/** Accepts a UUID of any version and variant. */
function keyIdBytes(keyId: string): Uint8Array {
  const bytes = Buffer.from(keyId.replaceAll("-", ""), "hex");
  if (bytes.length !== KEY_ID_SIZE) throw new TypeError("a key id must have 16 bytes");
  return bytes;
}

function isTagged({ prefix, payload }: SecretFormat, tagKeys: KeyRing): boolean {
  const tagged = payload.subarray(0, TAGGED_SIZE);
  const tag = payload.subarray(TAGGED_SIZE);
  return tagKeys.all.some((key) => equalBytes(tag, secretTag(key, prefix, tagged)));
}

/** The zero byte terminates the prefix, so that distinct prefixes and payloads have distinct inputs. */
function secretTag(key: ServerKey, prefix: SecretPrefix, tagged: Uint8Array): Uint8Array {
  return hmacSha256(key, `${prefix}\0`, tagged).subarray(0, TAG_SIZE);
}
