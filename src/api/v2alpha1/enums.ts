import {
  HashAlgorithm as WireHashAlgorithm,
  KeyKind as WireKeyKind,
  KeyStatus as WireKeyStatus,
  RevocationReason as WireRevocationReason,
} from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  CredentialType as WireCredentialType,
  VerificationError as WireVerificationError,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { TextEncoding as WireTextEncoding } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { type KeyKind, type KeyStatus, REVOCATION_REASONS, type RevocationReason } from "../../domain/key.ts";
import { HASH_ALGORITHMS, type HashAlgorithm, TEXT_ENCODINGS, type TextEncoding } from "../../domain/raw-key-hash.ts";
import type { CredentialType, VerificationError } from "../../domain/verdict.ts";

/** Enum numbers by domain name, one table per enum. */
export const KEY_STATUS: Readonly<Record<KeyStatus, WireKeyStatus>> = {
  ACTIVE: WireKeyStatus.ACTIVE,
  REVOKED: WireKeyStatus.REVOKED,
  EXPIRED: WireKeyStatus.EXPIRED,
  DISABLED: WireKeyStatus.DISABLED,
};

export const KEY_KIND: Readonly<Record<KeyKind, WireKeyKind>> = {
  issued: WireKeyKind.ISSUED,
  imported: WireKeyKind.IMPORTED,
};

export const HASH_ALGORITHM: Readonly<Record<HashAlgorithm, WireHashAlgorithm>> = {
  SHA256: WireHashAlgorithm.SHA256,
  SHA384: WireHashAlgorithm.SHA384,
  SHA512: WireHashAlgorithm.SHA512,
  SHA512_256: WireHashAlgorithm.SHA512_256,
  HMAC_SHA256: WireHashAlgorithm.HMAC_SHA256,
  HMAC_SHA512: WireHashAlgorithm.HMAC_SHA512,
  BCRYPT: WireHashAlgorithm.BCRYPT,
  ARGON2: WireHashAlgorithm.ARGON2,
  SCRYPT: WireHashAlgorithm.SCRYPT,
  PBKDF2: WireHashAlgorithm.PBKDF2,
};

export const TEXT_ENCODING: Readonly<Record<TextEncoding, WireTextEncoding>> = {
  HEX: WireTextEncoding.HEX,
  BASE64: WireTextEncoding.BASE64,
  BASE64URL: WireTextEncoding.BASE64URL,
  UTF8: WireTextEncoding.UTF8,
};

export const CREDENTIAL_TYPE: Readonly<Record<CredentialType, WireCredentialType>> = {
  ISSUED_API_KEY: WireCredentialType.ISSUED_API_KEY,
  IMPORTED_API_KEY: WireCredentialType.IMPORTED_API_KEY,
  JWT: WireCredentialType.JWT,
  MACAROON: WireCredentialType.MACAROON,
};

export const VERIFICATION_ERROR: Readonly<Record<VerificationError, WireVerificationError>> = {
  VERIFICATION_ERROR_INVALID_FORMAT: WireVerificationError.INVALID_FORMAT,
  VERIFICATION_ERROR_EXPIRED: WireVerificationError.EXPIRED,
  VERIFICATION_ERROR_REVOKED: WireVerificationError.REVOKED,
  VERIFICATION_ERROR_NOT_FOUND: WireVerificationError.NOT_FOUND,
  VERIFICATION_ERROR_SIGNATURE_INVALID: WireVerificationError.SIGNATURE_INVALID,
  VERIFICATION_ERROR_INTERNAL: WireVerificationError.INTERNAL,
  VERIFICATION_ERROR_DISABLED: WireVerificationError.DISABLED,
  VERIFICATION_ERROR_IP_NOT_ALLOWED: WireVerificationError.IP_NOT_ALLOWED,
  VERIFICATION_ERROR_AUDIENCE_MISMATCH: WireVerificationError.AUDIENCE_MISMATCH,
  VERIFICATION_ERROR_INSUFFICIENT_SCOPE: WireVerificationError.INSUFFICIENT_SCOPE,
};

export const REVOCATION_REASON: Readonly<Record<RevocationReason, WireRevocationReason>> = {
  REVOCATION_REASON_UNSPECIFIED: WireRevocationReason.UNSPECIFIED,
  REVOCATION_REASON_KEY_COMPROMISE: WireRevocationReason.KEY_COMPROMISE,
  REVOCATION_REASON_AFFILIATION_CHANGED: WireRevocationReason.AFFILIATION_CHANGED,
  REVOCATION_REASON_SUPERSEDED: WireRevocationReason.SUPERSEDED,
  REVOCATION_REASON_PRIVILEGE_WITHDRAWN: WireRevocationReason.PRIVILEGE_WITHDRAWN,
};

export function revocationReason(wire: WireRevocationReason): RevocationReason {
  const reason = REVOCATION_REASONS.find((name) => REVOCATION_REASON[name] === wire);
  if (reason === undefined) throw invalidArgument("reason", `has no value ${wire}`, "UNKNOWN_ENUM_VALUE");
  return reason;
}

/** Returns an algorithm; null if none is given. Throws `INVALID_ARGUMENT` naming `field` for a number that has no name. */
export function hashAlgorithm(wire: WireHashAlgorithm | undefined, field: string): HashAlgorithm | null {
  if (wire === undefined || wire === WireHashAlgorithm.UNSPECIFIED) return null;
  return HASH_ALGORITHMS.find((name) => HASH_ALGORITHM[name] === wire) ?? unknownValue(field, wire);
}

/** Returns an encoding; null if none is given. Throws `INVALID_ARGUMENT` naming `field` for a number that has no name. */
export function textEncoding(wire: WireTextEncoding | undefined, field: string): TextEncoding | null {
  if (wire === undefined || wire === WireTextEncoding.UNSPECIFIED) return null;
  return TEXT_ENCODINGS.find((name) => TEXT_ENCODING[name] === wire) ?? unknownValue(field, wire);
}

function unknownValue(field: string, wire: number): never {
  throw invalidArgument(field, `has no value ${wire}`, "UNKNOWN_ENUM_VALUE");
}
