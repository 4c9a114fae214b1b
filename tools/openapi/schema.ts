import { type DescEnum, type DescField, type DescMessage, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { CommentOf } from "./comments.ts";
import { constraintsOf, isRequired, isSettable, itemConstraintsOf } from "./rules.ts";

/** Whether a schema is for what callers send, or for what they get. */
export type Direction = "input" | "output";

/** Messages of Google that have a JSON form of their own. */
const WELL_KNOWN: Readonly<Record<string, JsonObject>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^\\d+(\\.\\d+)?s$" },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.FieldMask": { type: "string" },
  "google.protobuf.Value": { description: "Any JSON value." },
};

const SCALARS: Readonly<Partial<Record<ScalarType, JsonObject>>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.INT32]: { type: "integer", format: "int32" },
  [ScalarType.INT64]: { type: "string", format: "int64" },
};

/** Messages and times that every answer of their kind has: Protobuf cannot say so. The tests compare with real answers. */
const ALWAYS_SET: ReadonlySet<string> = new Set([
  "CreateIssuedApiKeyResponse.issued_api_key",
  "RotateIssuedApiKeyResponse.issued_api_key",
  "DeriveTokenResponse.token",
  "DerivedToken.expire_time",
  "ApiKey.create_time",
  "AuditEvent.time",
  "AuditEvent.caller",
  "ApiKey.update_time",
  "IssuedApiKey.create_time",
  "IssuedApiKey.update_time",
  "ImportedApiKey.create_time",
  "ImportedApiKey.update_time",
  "RevokeApiKeyResponse.revoke_time",
  "SelfRevokeApiKeyResponse.revoke_time",
]);

/** Messages with an enum that requests and responses contain: those of requests have a schema of their own, whose enums are closed. */
const IN_BOTH: ReadonlySet<string> = new Set(["RateLimit", "Quota"]);

/** The JSON Schemas of messages, gathered as `components.schemas` of the document. */
export class Schemas {
  readonly components: JsonObject = {};
  readonly #comment: CommentOf;

  constructor(comment: CommentOf) {
    this.#comment = comment;
  }

  /** A reference to the schema of a message. */
  ref(message: DescMessage, direction: Direction): JsonObject {
    const name = nameOf(message) + (direction === "input" && IN_BOTH.has(message.name) ? "Input" : "");
    if (this.components[name] === undefined) {
      // There before it is whole, as messages may hold themselves.
      this.components[name] = {};
      this.components[name] = this.#object(message, message.fields, direction, this.#comment(message));
    }
    return refTo(name);
  }

  /**
   * A reference to a schema of its own for a body that is not a whole message: what callers may set in it, without the fields that
   * stand elsewhere in the request.
   */
  body(name: string, description: string, message: DescMessage, elsewhere: ReadonlySet<DescField>): JsonObject {
    const fields = message.fields.filter((field) => !elsewhere.has(field) && isSettable(field));
    this.components[name] = this.#object(message, fields, "input", description);
    return refTo(name);
  }

  /**
   * Adds no `additionalProperties: false` for requests, although the server rejects unknown fields: openapi-generator would make a map of
   * the class and lose its fields.
   */
  #object(message: DescMessage, fields: readonly DescField[], direction: Direction, description: string): JsonObject {
    const required = fields.filter((field) => isAlwaysThere(message, field, direction)).map(({ name }) => name);
    return {
      type: "object",
      ...(description === "" ? {} : { description }),
      properties: Object.fromEntries(fields.map((field) => [field.name, this.field(field, direction)])),
      ...(required.length > 0 ? { required } : {}),
    };
  }

  /** The schema of a field, with what its proto says of it. */
  field(field: DescField, direction: Direction): JsonObject {
    const constraints = direction === "input" ? constraintsOf(field) : {};
    const { description: ofType, ...type } = this.#type(field, direction);
    const description = [this.#comment(field), ofType].filter(Boolean).join(" ");
    return { ...(description === "" ? {} : { description }), ...type, ...constraints };
  }

  #type(field: DescField, direction: Direction): JsonObject {
    switch (field.fieldKind) {
      case "list":
        return {
          type: "array",
          items: { ...this.#single(field, direction), ...inputOnly(direction, itemConstraintsOf(field)) },
        };
      case "map":
        return { type: "object", additionalProperties: this.#single(field, direction) };
      default:
        return this.#single(field, direction);
    }
  }

  /** The schema of one value: of a list or map that of an item. */
  #single(field: DescField, direction: Direction): JsonObject {
    if (field.message !== undefined) return WELL_KNOWN[field.message.typeName] ?? this.ref(field.message, direction);
    if (field.enum !== undefined) return this.#enum(field, field.enum, direction);
    const scalar = field.scalar === undefined ? undefined : SCALARS[field.scalar];
    if (scalar === undefined) throw new Error(`${field}: no schema is known for its type`);
    return scalar;
  }

  /**
   * Closed in requests, open in responses. Both have the component, so that generated clients have constants for the values of
   * responses too.
   */
  #enum(field: DescField, desc: DescEnum, direction: Direction): JsonObject {
    const name = nameOf(desc);
    this.components[name] ??= this.#enumComponent(field, desc);
    return direction === "input" ? refTo(name) : openEnum(`A value of \`${name}\``, namesOf(desc));
  }

  /** A field that is required may not have the name for no value. */
  #enumComponent(field: DescField, desc: DescEnum): JsonObject {
    const values = isRequired(field) ? desc.values.slice(1) : desc.values;
    const meanings = values.flatMap((value) => {
      const comment = this.#comment(value);
      return comment === "" ? [] : [`- \`${value.name}\`: ${comment}`];
    });
    const description = [this.#comment(desc), meanings.join("\n")].filter((text) => text !== "").join("\n\n");
    return { type: "string", description, enum: values.map(({ name }) => name) };
  }
}

/**
 * The schema of an enum to which later releases may add values. It has no `enum`: clients of openapi-generator (Java, Rust) and
 * openapi-python-client reject a response with a value that is not listed there. `x-extensible-enum` is Zalando's extension.
 */
export function openEnum(description: string, values: readonly string[]): JsonObject {
  return {
    type: "string",
    description: `${description}; later releases may add values.`,
    "x-extensible-enum": [...values],
  };
}

export function refTo(component: string): JsonObject {
  return { $ref: `#/components/schemas/${component}` };
}

function namesOf({ values }: DescEnum): string[] {
  return values.map(({ name }) => name);
}

function inputOnly(direction: Direction, constraints: JsonObject): JsonObject {
  return direction === "input" ? constraints : {};
}

/** The name without its package, such as `Outer_Inner`. */
export function nameOf({ typeName, file }: DescMessage | DescEnum): string {
  return typeName.slice(file.proto.package.length + 1).replaceAll(".", "_");
}

/** An update sends any part of a resource; an answer has all that JSON always shows. */
function isAlwaysThere(message: DescMessage, field: DescField, direction: Direction): boolean {
  if (direction === "input") return isRequired(field);
  return isAlwaysShown(field) || ALWAYS_SET.has(`${message.name}.${field.name}`);
}

/** Lists, maps and values without presence (docs/api.md, "JSON"). */
function isAlwaysShown({ fieldKind, presence }: DescField): boolean {
  return (
    fieldKind === "list" ||
    fieldKind === "map" ||
    (fieldKind !== "message" && presence === FeatureSet_FieldPresence.IMPLICIT)
  );
}
