import {
  HashAlgorithm as WireHashAlgorithm,
  KeyKind as WireKeyKind,
  QuotaPeriod as WireQuotaPeriod,
  RevocationReason as WireRevocationReason,
} from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { TextEncoding as WireTextEncoding } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { KeyPagePermission as WireKeyPagePermission } from "../../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { KEY_KINDS, type KeyKind, REVOCATION_REASONS, type RevocationReason } from "../../domain/key.ts";
import { KEY_PAGE_PERMISSIONS, type KeyPagePermission } from "../../domain/key-page.ts";
import { PERIODS, type Quota } from "../../domain/rate-limit.ts";
import { HASH_ALGORITHMS, type HashAlgorithm, TEXT_ENCODINGS, type TextEncoding } from "../../domain/raw-key-hash.ts";

/*
 * The domain names the values of an enum as the API does, without the prefix. So a generated enum translates them: `KeyStatus[status]`. The
 * exception is the kind of a key.
 */

export const KEY_KIND: Readonly<Record<KeyKind, WireKeyKind>> = {
  issued: WireKeyKind.ISSUED,
  imported: WireKeyKind.IMPORTED,
};

export function revocationReason(wire: WireRevocationReason): RevocationReason {
  return nameOf(wire, REVOCATION_REASONS, WireRevocationReason, "reason");
}

/** Returns null if no algorithm is given. */
export function hashAlgorithm(wire: WireHashAlgorithm | undefined, field: string): HashAlgorithm | null {
  return wire ? nameOf(wire, HASH_ALGORITHMS, WireHashAlgorithm, field) : null;
}

export function quotaPeriod(wire: WireQuotaPeriod, field: string): Quota["period"] {
  return nameOf(wire, PERIODS, WireQuotaPeriod, field);
}

export function keyPagePermission(wire: WireKeyPagePermission, field: string): KeyPagePermission {
  return nameOf(wire, KEY_PAGE_PERMISSIONS, WireKeyPagePermission, field);
}

/** Returns null if no encoding is given. */
export function textEncoding(wire: WireTextEncoding | undefined, field: string): TextEncoding | null {
  return wire ? nameOf(wire, TEXT_ENCODINGS, WireTextEncoding, field) : null;
}

/** Returns undefined if no kind is given. */
export function keyKind(wire: WireKeyKind): KeyKind | undefined {
  return wire ? nameOf(wire, KEY_KINDS, KEY_KIND, "kind") : undefined;
}

/** Throws `INVALID_ARGUMENT` naming `field` for a number that has no name. */
function nameOf<N extends string>(wire: number, names: readonly N[], numbers: Record<N, number>, field: string): N {
  const name = names.find((name) => numbers[name] === wire);
  if (name === undefined) throw invalidArgument(field, `has the unknown value ${wire}`, "UNKNOWN_ENUM_VALUE");
  return name;
}
