import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type CreateImportedApiKeyRequest,
  CreateImportedApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { violationsOf } from "../../api/validation.ts";
import { parseDuration } from "../../domain/duration.ts";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { checkMetadata } from "../../domain/limits.ts";
import { parseJson } from "../../lib/json.ts";
import { redactName } from "../../lib/redact-name.ts";
import { parseScopes, scopeList } from "../scopes.ts";
import type { Row } from "./row.ts";

/** What a row may have: the fields of CreateImportedApiKeyRequest but `request_id`, which the import makes. */
export const FIELDS: ReadonlySet<string> = new Set(["raw_key", "name", "actor_id", "scopes", "ttl", "metadata"]);

export const REQUIRED_FIELDS = ["raw_key", "name", "actor_id"] as const;

/** A column of CSV for one entry of the metadata; an empty cell is no entry. */
export const METADATA_COLUMN = /^metadata\.(.+)$/s;

/** In a file of failures, what was wrong: a row that was corrected may keep it. */
export const ERROR_FIELD = "import_error";

/** A row as the server takes it, but for its `request_id`; or what is wrong with it, in words that quote no value. */
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
  const cells: (readonly [string, string])[] = [];
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(content)) {
    const [, entry] = METADATA_COLUMN.exec(name) ?? [];
    if (FIELDS.has(name)) fields[name] = value;
    else if (entry !== undefined) cells.push(...(value === "" ? [] : [[entry, text(name, value)] as const]));
    else if (name !== ERROR_FIELD) throw invalidArgument(redactName(name), "is no field of a key to import");
  }
  return {
    rawKey: text("raw_key", fields.raw_key),
    name: text("name", fields.name),
    actorId: text("actor_id", fields.actor_id),
    scopes: scopesOf(fields.scopes),
    ttl: isAbsent(fields.ttl) ? undefined : text("ttl", fields.ttl),
    metadata: mergeMetadata(metadataOf(fields.metadata), Object.fromEntries(cells)),
  };
}

function mergeMetadata(object: Record<string, string>, cells: Record<string, string>): Record<string, string> {
  const twice = Object.keys(cells).find((name) => Object.hasOwn(object, name));
  if (twice !== undefined) throw invalidArgument(redactName(`metadata.${twice}`), "is set twice");
  return { ...object, ...cells };
}

/** The rules of the server, here: a row that breaks them costs no call, and `--dry-run` needs no server. */
function checked(init: Init): CreateImportedApiKeyRequest {
  const request = create(CreateImportedApiKeyRequestSchema, init);
  const [violation] = violationsOf(CreateImportedApiKeyRequestSchema, request);
  if (violation !== undefined) throw invalidArgument(violation.field, violation.description);
  if (request.ttl !== undefined) parseDuration(request.ttl, "ttl");
  checkMetadata(request.metadata, "metadata");
  return request;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

function text(field: string, value: unknown): string {
  if (isAbsent(value)) throw invalidArgument(field, "is missing");
  if (typeof value !== "string") throw invalidArgument(field, "must be a text");
  return value;
}

/** An array, or a text as a cell of CSV has it. */
function scopesOf(value: unknown): string[] {
  if (isAbsent(value)) return [];
  return typeof value === "string" ? parseScopes("scopes", value) : scopeList("scopes", value);
}

/** An object; in a cell of CSV as JSON. */
function metadataOf(value: unknown): Record<string, string> {
  if (isAbsent(value)) return {};
  const entries = typeof value === "string" ? parseJson(value) : value;
  if (!isObject(entries)) throw invalidArgument("metadata", "must be an object of texts");
  return Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => {
      if (typeof entry !== "string") throw invalidArgument("metadata", "must have texts as its values");
      return [name, entry];
    }),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
