import type { MessageInitShape } from "@bufbuild/protobuf";
import { HashAlgorithm } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { TextEncoding } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import type { RawKeyHashSchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { HASH_ALGORITHMS, TEXT_ENCODINGS } from "../../domain/raw-key-hash.ts";
import { isJsonObject } from "../../lib/json.ts";
import { redactName } from "../../lib/redact-name.ts";
import { HASH_ALGORITHM_NAMES, HASH_ENCODING_NAMES, type HashDefaults } from "../hash-options.ts";
import { type Fields, HASH_FIELDS, type HashField } from "./fields.ts";

type Init = MessageInitShape<typeof RawKeyHashSchema>;

/** Returns the hash of a row; undefined if it has none. Throws `INVALID_ARGUMENT` without quoting a value. */
export function rawKeyHashOf(fields: Fields, defaults: HashDefaults): Init | undefined {
  const own = membersOf(fields);
  if (own.size === 0) return undefined;
  const phc = own.get("phc");
  const from = (field: Exclude<HashField, "value" | "phc">) => own.get(field) ?? defaults[field];
  const affixes = { prefix: from("prefix"), suffix: from("suffix") };
  if (phc !== undefined && !own.has("value")) return { ...affixes, phc, ...stated(own) };
  const algorithm = algorithmOf(from("algorithm"));
  const encoding = encodingOf(from("encoding"));
  const hmacKeyId = own.get("hmac_key_id") ?? (isKeyed(algorithm) ? defaults.hmac_key_id : undefined);
  return { ...affixes, algorithm, encoding, hmacKeyId, value: own.get("value"), phc };
}

/** What a row states beside `phc`, which the rules reject. */
function stated(own: ReadonlyMap<HashField, string>): Init {
  return {
    algorithm: algorithmOf(own.get("algorithm")),
    encoding: encodingOf(own.get("encoding")),
    hmacKeyId: own.get("hmac_key_id"),
  };
}

function isKeyed(algorithm: HashAlgorithm | undefined): boolean {
  return algorithm === HashAlgorithm.HMAC_SHA256 || algorithm === HashAlgorithm.HMAC_SHA512;
}

/** Returns the fields of the hash that are set, by their names in `raw_key_hash`. */
function membersOf(fields: Fields): ReadonlyMap<HashField, string> {
  const { raw_key_hash: whole = null } = fields;
  if (whole !== null && whole !== "" && !isJsonObject(whole)) {
    throw invalidArgument("raw_key_hash", "must be an object; in CSV, use the columns hash and phc");
  }
  const object = isJsonObject(whole) ? whole : {};
  const unknown = Object.keys(object).find((name) => !HASH_FIELDS.some((field) => field === name));
  if (unknown !== undefined) {
    const allowed = HASH_FIELDS.join(", ");
    throw invalidArgument(
      `raw_key_hash.${redactName(unknown, HASH_FIELDS)}`,
      `is an unknown field; allowed: ${allowed}`,
    );
  }
  const members = new Map<HashField, string>();
  for (const field of HASH_FIELDS) {
    const short = SHORT_NAMES[field];
    const values = [object[field], fields[`raw_key_hash.${field}`], short && fields[short]].filter(isSet);
    if (values.length > 1) throw invalidArgument(short ?? `raw_key_hash.${field}`, "is set twice");
    const [value] = values;
    if (value === undefined) continue;
    if (typeof value !== "string") throw invalidArgument(short ?? `raw_key_hash.${field}`, "must be a string");
    members.set(field, value);
  }
  return members;
}

const SHORT_NAMES: Readonly<Partial<Record<HashField, string>>> = { value: "hash", phc: "phc" };

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

function algorithmOf(text: string | undefined): HashAlgorithm | undefined {
  const name = namedIn(HASH_ALGORITHMS, text, "algorithm", "HASH_ALGORITHM_", HASH_ALGORITHM_NAMES);
  return name && HashAlgorithm[name];
}

function encodingOf(text: string | undefined): TextEncoding | undefined {
  const name = namedIn(TEXT_ENCODINGS, text, "encoding", "TEXT_ENCODING_", HASH_ENCODING_NAMES);
  return name && TextEncoding[name];
}

/** Accepts `SHA256`, `sha256` and `HASH_ALGORITHM_SHA256`, and `-` for `_`. Throws `INVALID_ARGUMENT` with the usual names. */
function namedIn<N extends string>(
  names: readonly N[],
  text: string | undefined,
  field: HashField,
  prefix: string,
  usual: readonly string[],
): N | undefined {
  if (text === undefined) return undefined;
  const upperCase = text.toUpperCase().replaceAll("-", "_");
  const name = names.find((allowed) => upperCase === allowed || upperCase === prefix + allowed);
  if (name === undefined) throw invalidArgument(`raw_key_hash.${field}`, `is unknown; allowed: ${usual.join(", ")}`);
  return name;
}
