import {
  HashAlgorithm as WireHashAlgorithm,
  KeyKind as WireKeyKind,
  RevocationReason as WireRevocationReason,
} from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { TextEncoding as WireTextEncoding } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { type KeyKind, REVOCATION_REASONS, type RevocationReason } from "../../domain/key.ts";
import { HASH_ALGORITHMS, type HashAlgorithm, TEXT_ENCODINGS, type TextEncoding } from "../../domain/raw-key-hash.ts";

/*
 * The domain names the values of an enum as the API does, without the prefix. So a generated enum translates them: `KeyStatus[status]`. The
 * exception is the kind of a key.
 */

export const KEY_KIND: Readonly<Record<KeyKind, WireKeyKind>> = {
  issued: WireKeyKind.ISSUED,
  imported: WireKeyKind.IMPORTED,
};

/** Throws `INVALID_ARGUMENT` for a number that has no name. */
export function revocationReason(wire: WireRevocationReason): RevocationReason {
  return REVOCATION_REASONS.find((name) => WireRevocationReason[name] === wire) ?? unknownValue("reason", wire);
}

/** Returns an algorithm; null if none is given. Throws `INVALID_ARGUMENT` naming `field` for a number that has no name. */
export function hashAlgorithm(wire: WireHashAlgorithm | undefined, field: string): HashAlgorithm | null {
  if (wire === undefined || wire === WireHashAlgorithm.UNSPECIFIED) return null;
  return HASH_ALGORITHMS.find((name) => WireHashAlgorithm[name] === wire) ?? unknownValue(field, wire);
}

/** Returns an encoding; null if none is given. Throws `INVALID_ARGUMENT` naming `field` for a number that has no name. */
export function textEncoding(wire: WireTextEncoding | undefined, field: string): TextEncoding | null {
  if (wire === undefined || wire === WireTextEncoding.UNSPECIFIED) return null;
  return TEXT_ENCODINGS.find((name) => WireTextEncoding[name] === wire) ?? unknownValue(field, wire);
}

function unknownValue(field: string, wire: number): never {
  throw invalidArgument(field, `has the unknown value ${wire}`, "UNKNOWN_ENUM_VALUE");
}
