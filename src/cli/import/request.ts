import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { importInput } from "../../api/v2alpha1/import-input.ts";
import { validated } from "../../api/validation.ts";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { UNLIMITED } from "../../domain/expiry.ts";
import { checkNewImport } from "../../keys/import.ts";
import { systemClock } from "../../lib/clock.ts";
import { isJsonObject, parseJson } from "../../lib/json.ts";
import { redactName } from "../../lib/redact-name.ts";
import type { HashDefaults } from "../hash-options.ts";
import { timestampOf } from "../options.ts";
import { parseScopes, scopeList } from "../scopes.ts";
import { type Fields, fieldsOf, metadataKey, type RowOptions } from "./fields.ts";
import { rawKeyHashOf } from "./hash.ts";
import type { Row } from "./records.ts";

/** Returns the request of a row without its `request_id`, or an error message that quotes no value. */
export function requestOf({ content }: Row, options: RowOptions): CreateImportedApiKeyRequest | string {
  if (typeof content === "string") return content;
  try {
    const { columns, hash, allowWeak = false } = options;
    return checked({ ...toRequest(fieldsOf(content, columns), hash), allowWeak });
  } catch (error) {
    if (error instanceof KeyholdError) return error.message;
    throw error;
  }
}

type Init = MessageInitShape<typeof CreateImportedApiKeyRequestSchema>;

function toRequest(fields: Fields, defaults: HashDefaults): Init {
  return {
    ...keyOf(fields, defaults),
    name: text("name", fields.name),
    actorId: text("actor_id", fields.actor_id),
    scopes: scopesOf(fields.scopes),
    ttl: optionalText("ttl", fields.ttl),
    expireTime: timeOf("expire_time", fields.expire_time),
    ipRestriction: ipRestrictionOf(fields.ip_restriction),
    metadata: metadataOf(fields),
  };
}

/** Returns the raw key or its hash. A row with both is rejected by the rules. */
function keyOf(fields: Fields, defaults: HashDefaults) {
  const rawKeyHash = rawKeyHashOf(fields, defaults);
  const lookupPrefix = optionalText("lookup_prefix", fields.lookup_prefix);
  const adoptBeforeTime = timeOf("adopt_before_time", fields.adopt_before_time);
  if (rawKeyHash === undefined) return { rawKey: text("raw_key", fields.raw_key), lookupPrefix, adoptBeforeTime };
  const rawKey = optionalText("raw_key", fields.raw_key) ?? "";
  return { rawKey, rawKeyHash, lookupPrefix, adoptBeforeTime: adoptBeforeTime ?? defaults.adoptBeforeTime };
}

/**
 * Applies the server's rules locally, so that invalid rows cost no call and `--dry-run` needs no server. The prefix of issued secrets is
 * known only to the server.
 */
function checked(init: Init): CreateImportedApiKeyRequest {
  const request = create(CreateImportedApiKeyRequestSchema, init);
  const local = { clock: systemClock, lifetimes: UNLIMITED, looksLikeOurs: () => false };
  validated(CreateImportedApiKeyRequestSchema, request, (message) => checkNewImport(local, importInput(message)));
  return request;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

function optionalText(field: string, value: unknown): string | undefined {
  return isAbsent(value) ? undefined : text(field, value);
}

function timeOf(field: string, value: unknown): Timestamp | undefined {
  return isAbsent(value) ? undefined : timestampOf(field, text(field, value));
}

function text(field: string, value: unknown): string {
  if (isAbsent(value)) throw invalidArgument(field, "is missing");
  if (typeof value !== "string") throw invalidArgument(field, "must be a string");
  return value;
}

/** Accepts an array, or a string as in CSV. */
function scopesOf(value: unknown): string[] {
  if (isAbsent(value)) return [];
  return typeof value === "string" ? parseScopes("scopes", value) : scopeList("scopes", value);
}

/** Accepts an object with `allowed_cidrs`, or the blocks separated by spaces as in CSV. */
function ipRestrictionOf(value: unknown): { allowedCidrs: string[] } | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value === "string") return { allowedCidrs: value.split(/\s+/).filter(Boolean) };
  const { allowed_cidrs: list, ...others } = isJsonObject(value) ? value : {};
  if (!Array.isArray(list) || list.some((cidr) => typeof cidr !== "string") || Object.keys(others).length > 0) {
    throw invalidArgument("ip_restriction", "must be an object with allowed_cidrs, a list of strings");
  }
  return { allowedCidrs: list.map(String) };
}

/** Returns the entries of `metadata` (an object, or its JSON as in CSV) and of its columns. */
function metadataOf(fields: Fields): Record<string, string> {
  const metadata = wholeMetadata(fields.metadata);
  for (const [name, value] of Object.entries(fields)) {
    const key = metadataKey(name);
    if (key === undefined || value === "" || value === undefined) continue;
    if (metadata.has(key)) throw invalidArgument(redactName(name), "is set twice");
    metadata.set(key, text(name, value));
  }
  return Object.fromEntries(metadata);
}

function wholeMetadata(value: unknown): Map<string, string> {
  if (isAbsent(value)) return new Map();
  const entries = typeof value === "string" ? parseJson(value) : value;
  if (!isJsonObject(entries)) throw invalidArgument("metadata", "must be an object of strings");
  return new Map(
    Object.entries(entries).map(([name, entry]) => {
      if (typeof entry !== "string") throw invalidArgument("metadata", "must have strings as values");
      return [name, entry];
    }),
  );
}
