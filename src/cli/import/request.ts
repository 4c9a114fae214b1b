import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { validated } from "../../api/validation.ts";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { UNLIMITED } from "../../domain/expiry.ts";
import { checkNewKey } from "../../keys/new-key.ts";
import { systemClock } from "../../lib/clock.ts";
import { isJsonObject, parseJson } from "../../lib/json.ts";
import { redactName } from "../../lib/redact-name.ts";
import { timestampOf } from "../options.ts";
import { parseScopes, scopeList } from "../scopes.ts";
import type { Row } from "./records.ts";

/** The fields of a row: those of CreateImportedApiKeyRequest except `request_id`, which the import generates. */
export const FIELDS: ReadonlySet<string> = new Set([
  "raw_key",
  "name",
  "actor_id",
  "scopes",
  "ttl",
  "expire_time",
  "ip_restriction",
  "metadata",
]);

export const REQUIRED_FIELDS = ["raw_key", "name", "actor_id"] as const;

/** A CSV column for one metadata entry; an empty cell is no entry. */
export const METADATA_COLUMN = /^metadata\.(.+)$/s;

/** The error in a failure file. It is ignored in a corrected row. */
export const ERROR_FIELD = "import_error";

/** Returns the request of a row without its `request_id`, or an error message that quotes no value. */
export function requestOf({ content }: Row): CreateImportedApiKeyRequest | string {
  if (typeof content === "string") return content;
  try {
    return checked(toRequest(content));
  } catch (error) {
    if (error instanceof KeyholdError) return error.message;
    throw error;
  }
}

type Init = MessageInitShape<typeof CreateImportedApiKeyRequestSchema>;

function toRequest(content: Readonly<Record<string, unknown>>): Init {
  const metadata = metadataOf(content.metadata);
  for (const [name, value] of Object.entries(content)) {
    if (FIELDS.has(name) || name === ERROR_FIELD) continue;
    const [, entry] = METADATA_COLUMN.exec(name) ?? [];
    if (entry === undefined)
      throw invalidArgument(redactName(name), `is an unknown field; allowed: ${[...FIELDS].join(", ")}`);
    if (value === "") continue;
    if (metadata.has(entry)) throw invalidArgument(redactName(name), "is set twice");
    metadata.set(entry, text(name, value));
  }
  return {
    rawKey: text("raw_key", content.raw_key),
    name: text("name", content.name),
    actorId: text("actor_id", content.actor_id),
    scopes: scopesOf(content.scopes),
    ttl: isAbsent(content.ttl) ? undefined : text("ttl", content.ttl),
    expireTime: isAbsent(content.expire_time)
      ? undefined
      : timestampOf("expire_time", text("expire_time", content.expire_time)),
    ipRestriction: ipRestrictionOf(content.ip_restriction),
    metadata: Object.fromEntries(metadata),
  };
}

/** Applies the server's rules locally, so that invalid rows cost no call and `--dry-run` needs no server. */
function checked(init: Init): CreateImportedApiKeyRequest {
  const request = create(CreateImportedApiKeyRequestSchema, init);
  const local = { clock: systemClock, lifetimes: UNLIMITED };
  validated(CreateImportedApiKeyRequestSchema, request, (one) => checkNewKey(local, one));
  return request;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
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

/** Accepts an object, or its JSON as in CSV. */
function metadataOf(value: unknown): Map<string, string> {
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
