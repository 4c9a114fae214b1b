import { type DescField, type DescMessage, getOption, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { FieldBehavior, field_behavior } from "../../../gen/google/api/field_behavior_pb.js";
import {
  checkAll,
  type FieldViolation,
  invalidArgument,
  invalidArguments,
  MAX_VIOLATIONS,
} from "../../domain/errors.ts";
import { type KeyKind, parseKeyId } from "../../domain/key.ts";
import type { KeyUpdate } from "../../keys/store.ts";
import { checkUpdate } from "../../keys/update.ts";
import { redactName } from "../../lib/redact-name.ts";
import { isDerivedMask } from "../derived-mask.ts";
import { requireSet } from "../validation.ts";

/** The resource in an update request, of either kind of key. */
type KeyMessage = Required<KeyUpdate> & { readonly keyId: string };

/** Returns the key and the changes of an update request. Throws `INVALID_ARGUMENT` with every invalid field. */
export function readUpdate<S extends DescMessage>(
  kind: KeyKind,
  schema: S,
  resource: (MessageShape<S> & KeyMessage) | undefined,
  mask: FieldMask | undefined,
) {
  const field = `${kind}_api_key`;
  const key = requireSet(resource, field);
  const [keyId, update] = checkAll(
    () => parseKeyId(key.keyId, `${field}.key_id`),
    () => {
      const update = maskedUpdate(mask, schema, key);
      checkUpdate(update, kind);
      return update;
    },
  );
  return { name: { keyId, kind }, update };
}

/**
 * Returns the update that a request describes (AIP-134): the fields of the mask; without a mask, or with `*`, the resource as a whole. For a
 * whole resource, output-only fields are ignored, and so is the key_id, which identifies the key. Its immutable fields are included, because
 * only the current record shows whether a change is requested (AIP-203). Rejects a mask with a field that cannot be updated, because
 * ignoring it would hide a mistake.
 */
export function maskedUpdate<S extends DescMessage>(
  mask: FieldMask | undefined,
  schema: S,
  key: MessageShape<S> & KeyMessage,
): KeyUpdate {
  const fields = mask === undefined || isDerivedMask(mask) ? present(mask, schema, key) : named(mask, schema, key);
  if (!fields.some(isUpdatable)) {
    throw invalidArgument("update_mask", `names no field to change: ${updatableNames(schema)}`, "FIELD_REQUIRED");
  }
  return Object.fromEntries(fields.map(({ localName }) => [localName, Reflect.get(key, localName)]));
}

/** Without a mask: the fields set in the message. With one that was derived: its fields; an immutable one only if it is set, as with `*`. */
function present<S extends DescMessage>(mask: FieldMask | undefined, { fields }: S, key: MessageShape<S>): DescField[] {
  const isPresent = (field: DescField) => mask?.paths.includes(field.name) ?? isFieldSet(key, field);
  return fields.filter((field) => (isUpdatable(field) && isPresent(field)) || isSetImmutable(field, key));
}

function named<S extends DescMessage>({ paths }: FieldMask, schema: S, key: MessageShape<S>): DescField[] {
  // A mask may have several 100,000 paths.
  const unique = new Set<string>();
  const violations: FieldViolation[] = [];
  for (const path of paths) {
    if (unique.has(path)) continue;
    unique.add(path);
    const field = schema.fields.find(({ name }) => name === path);
    if (path === "*" || (field !== undefined && isUpdatable(field))) continue;
    const description = `${redactName(path)} is not one of ${updatableNames(schema)}`;
    const reason = field === undefined ? "UNKNOWN_FIELD" : "FIELD_NOT_UPDATABLE";
    if (violations.push({ field: "update_mask", description, reason }) === MAX_VIOLATIONS) break;
  }
  if (violations.length > 0) throw invalidArguments(violations);
  const isWhole = unique.has("*");
  return schema.fields.filter((field) => {
    return unique.has(field.name) || (isWhole && (isUpdatable(field) || isSetImmutable(field, key)));
  });
}

function updatableNames({ fields }: DescMessage): string {
  return fields
    .filter(isUpdatable)
    .map(({ name }) => name)
    .join(", ");
}

const { IDENTIFIER, IMMUTABLE, OUTPUT_ONLY } = FieldBehavior;

function isUpdatable(field: DescField): boolean {
  return ![IDENTIFIER, IMMUTABLE, OUTPUT_ONLY].some((behavior) => hasBehavior(field, behavior));
}

function isSetImmutable<S extends DescMessage>(field: DescField, key: MessageShape<S>): boolean {
  return hasBehavior(field, IMMUTABLE) && !hasBehavior(field, IDENTIFIER) && isFieldSet(key, field);
}

function hasBehavior(field: DescField, behavior: FieldBehavior): boolean {
  return getOption(field, field_behavior).includes(behavior);
}
