import { type DescMessage, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "../../domain/errors.ts";
import type { KeyChanges } from "../../keys/store.ts";
import { redactName } from "../../lib/redact-name.ts";

/** The fields that an update may change. */
const UPDATABLE = ["name", "scopes", "metadata"] as const;

type Updatable = (typeof UPDATABLE)[number];

/** The resource of either kind in an update request. */
type KeyMessage = Required<Pick<KeyChanges, Updatable>>;

/**
 * Returns the changes of an update (AIP-134): the fields of the mask, all updatable fields for `*`, or without a mask the fields set in
 * the message. Rejects an unknown or immutable field, in the mask or in the message, because ignoring it would hide a mistake.
 */
export function maskedChanges<S extends DescMessage>(
  mask: FieldMask | undefined,
  schema: S,
  key: MessageShape<S> & KeyMessage,
): KeyChanges {
  const paths = mask?.paths ?? populated(schema, key);
  const fields = new Set(paths.flatMap((path) => (path === "*" ? UPDATABLE : updatable(path))));
  if (fields.size === 0) throw invalidArgument("update_mask", `names no field to change: ${UPDATABLE.join(", ")}`);
  return Object.fromEntries([...fields].map((field) => [field, key[field]]));
}

function updatable(path: string): Updatable {
  const field = UPDATABLE.find((name) => name === path);
  if (field === undefined)
    throw invalidArgument("update_mask", `${redactName(path)} is not one of ${UPDATABLE.join(", ")}`);
  return field;
}

/** The key_id identifies the key and is not a change. */
function populated<S extends DescMessage>(schema: S, key: MessageShape<S>): string[] {
  return schema.fields.filter((field) => field.name !== "key_id" && isFieldSet(key, field)).map((field) => field.name);
}
