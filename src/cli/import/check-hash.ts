import { HashAlgorithm } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { TextEncoding } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import type { CreateImportedApiKeyRequest } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { parseLookupPrefix } from "../../credential/hash/lookup-prefix.ts";
import { parseRawKeyHash } from "../../credential/hash/parse.ts";
import { checkAll, invalidArgument } from "../../domain/errors.ts";
import { HASH_ALGORITHMS, TEXT_ENCODINGS } from "../../domain/raw-key-hash.ts";

/** Throws `INVALID_ARGUMENT` with every problem of the hash in a request, if there is one. */
export function checkHash(request: CreateImportedApiKeyRequest): void {
  const { rawKey, rawKeyHash, lookupPrefix, adoptBeforeTime } = request;
  if (rawKeyHash === undefined) {
    rejectWithoutHash({ lookup_prefix: lookupPrefix, adopt_before_time: adoptBeforeTime });
    return;
  }
  const { algorithm, encoding, phc } = rawKeyHash;
  checkAll(
    () => requireAbsent("raw_key", rawKey, "must not be set beside a hash"),
    () =>
      parseRawKeyHash({
        ...rawKeyHash,
        algorithm: algorithm ? HASH_ALGORITHMS.find((name) => HashAlgorithm[name] === algorithm) : null,
        encoding: encoding ? TEXT_ENCODINGS.find((name) => TextEncoding[name] === encoding) : null,
      }),
    () => {
      if (!phc) return requireAbsent("lookup_prefix", lookupPrefix, "is only for hashes with a salt, in phc");
      if (!lookupPrefix) throw invalidArgument("lookup_prefix", "is required with phc", "FIELD_REQUIRED");
      parseLookupPrefix(lookupPrefix);
    },
  );
}

function rejectWithoutHash(fields: Readonly<Record<string, unknown>>): void {
  for (const [field, value] of Object.entries(fields)) requireAbsent(field, value, "is only for keys with a hash");
}

function requireAbsent(field: string, value: unknown, why: string): void {
  if (value !== undefined && value !== "") throw invalidArgument(field, why, "VALUE_NOT_ALLOWED");
}
