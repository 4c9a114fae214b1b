import type { CreateImportedApiKeyRequest, RawKeyHash } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { RawKeyHashInput } from "../../hashing/input/raw-key-hash.ts";
import type { NewImportInput } from "../../keys/import.ts";
import { hashAlgorithm, textEncoding } from "./enums.ts";
import { limitInputs } from "./rate-limits.ts";

/** Returns the input of an import. Throws `INVALID_ARGUMENT` for an enum that has no name. */
export function importInput(request: CreateImportedApiKeyRequest): NewImportInput {
  const { rawKeyHash, ...fields } = request;
  const others = { ...fields, ...limitInputs(request) };
  return rawKeyHash === undefined ? others : { ...others, rawKeyHash: hashInput(rawKeyHash) };
}

function hashInput({ algorithm, encoding, ...texts }: RawKeyHash): RawKeyHashInput {
  return {
    ...texts,
    algorithm: hashAlgorithm(algorithm, "raw_key_hash.algorithm"),
    encoding: textEncoding(encoding, "raw_key_hash.encoding"),
  };
}
