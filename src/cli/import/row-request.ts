import {
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
  type RawKeyHash,
  RawKeyHashSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../../lib/json.ts";
import { redactName } from "../../lib/redact-name.ts";
import { readMessage } from "../../transport/wire/json/reader.ts";
import { parseScopes } from "../scopes.ts";
import { type Fields, fieldsOf, type HashDefaults, type RowOptions } from "./fields.ts";

/**
 * Returns the request of the JSON members or CSV cells of a row, without its `request_id`. Throws `INVALID_ARGUMENT` on a field of another form
 * than in the API; the other rules of the server are not checked. Runs in browsers too.
 */
export function rowRequest(content: Fields, options: RowOptions): CreateImportedApiKeyRequest {
  const { raw_key_hash: hash = null, ...others } = toJson(fieldsOf(content, options.columns));
  const { adoptBeforeTime, allowWeak = false } = options;
  const rawKeyHash = isJsonObject(hash) ? withDefaults(hash, options.hash) : hash;
  const request = readMessage(CreateImportedApiKeyRequestSchema, { ...others, raw_key_hash: rawKeyHash });
  if (request.rawKeyHash !== undefined && adoptBeforeTime !== undefined) request.adoptBeforeTime ??= adoptBeforeTime;
  return Object.assign(request, { allowWeak });
}

/** Returns the hash of a row, completed by the options. Throws `INVALID_ARGUMENT`. */
export function toRawKeyHash(hash: JsonObject, defaults: HashDefaults): RawKeyHash {
  return readMessage(RawKeyHashSchema, withDefaults(hash, defaults));
}

/** Adds the values of the options. A PHC string states its algorithm and encoding itself. */
function withDefaults(hash: JsonObject, defaults: HashDefaults): JsonObject {
  const { prefix, suffix, hmac_key_id: hmacKeyId, ...format } = defaults;
  const isPhc = hash.phc !== undefined && hash.value === undefined;
  const whole: Record<string, JsonValue | undefined> = { prefix, suffix, ...(isPhc ? {} : format), ...hash };
  const algorithm = enumName("HASH_ALGORITHM_", whole.algorithm);
  if (String(algorithm).includes("HMAC")) whole.hmac_key_id ??= hmacKeyId;
  const members = Object.entries({ ...whole, algorithm, encoding: enumName("TEXT_ENCODING_", whole.encoding) });
  return Object.fromEntries(members.filter((member): member is [string, JsonValue] => member[1] !== undefined));
}

/** Returns `HASH_ALGORITHM_SHA512_256` also for `sha512-256` and `SHA512_256`. */
function enumName(prefix: string, name: JsonValue | undefined): JsonValue | undefined {
  if (typeof name !== "string") return name;
  const upperCase = name.toUpperCase().replaceAll("-", "_");
  return upperCase.startsWith(prefix) ? upperCase : prefix + upperCase;
}

const SHORT_NAMES: Readonly<Record<string, string>> = { hash: "raw_key_hash.value", phc: "raw_key_hash.phc" };

/** A field of a message, or an entry of the metadata. */
const MEMBER = /^(raw_key_hash|metadata)\.(.+)$/s;

/** The fields that have another form in JSON than as text, such as in a cell of CSV. */
const TEXT_FORMS: Readonly<Record<string, (text: string) => JsonValue | undefined>> = {
  scopes: (text) => parseScopes("scopes", text),
  ip_restriction: (text) => ({ allowed_cidrs: text.split(/\s+/).filter(Boolean) }),
  metadata: parseJson,
};

/** Returns the fields of a row in the JSON of the API. An empty field is absent, as in CSV. */
function toJson(fields: Fields): JsonObject {
  const json: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null || value === "") continue;
    const [, parent, member = ""] = MEMBER.exec(SHORT_NAMES[name] ?? name) ?? [];
    const read = (typeof value === "string" && TEXT_FORMS[name]?.(value)) || value;
    if (parent === undefined) add(json, name, name, read);
    else add(json, parent, name, Object.fromEntries([[member, read]]));
  }
  return json;
}

/** Sets a field, or adds members to it. `readMessage` reports a value of another type, which therefore stays. */
function add(json: JsonObject, field: string, name: string, value: JsonValue): void {
  const before = json[field] ?? {};
  if (!isJsonObject(before)) return;
  const isTwice = isJsonObject(value) && Object.keys(value).some((key) => Object.hasOwn(before, key));
  if (isTwice) throw invalidArgument(redactName(name), "is set twice");
  json[field] = isJsonObject(value) ? { ...before, ...value } : value;
}
