import { type DescField, type DescMessage, type JsonValue, mergeFromJson } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { invalidArgument } from "../../errors.ts";
import { valueForm } from "./value-form.ts";

/** From a field of the request message to one of a message within it. */
export type FieldPath = readonly DescField[];

const fieldsByName = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** A field by its name in the proto or in lowerCamelCase. */
export function findField(desc: DescMessage, name: string): DescField | undefined {
  const known = fieldsByName.get(desc) ?? indexFields(desc);
  return known.get(name);
}

function indexFields(desc: DescMessage): ReadonlyMap<string, DescField> {
  const index = new Map([
    ...desc.fields.map((f) => [f.jsonName, f] as const),
    ...desc.fields.map((f) => [f.name, f] as const),
  ]);
  fieldsByName.set(desc, index);
  return index;
}

/** The fields that a dotted name goes through, or undefined if there is one that the message before it does not have. */
export function findFieldPath(desc: DescMessage, dotted: string): FieldPath | undefined {
  const path: DescField[] = [];
  let parent: DescMessage | undefined = desc;
  for (const name of dotted.split(".")) {
    const field: DescField | undefined = parent === undefined ? undefined : findField(parent, name);
    if (field === undefined) return undefined;
    path.push(field);
    parent = field.fieldKind === "message" && valueForm(field) === undefined ? field.message : undefined;
  }
  return path;
}

/** In snake_case, such as `shelf.display_name`. */
export function formatFieldPath(path: FieldPath): string {
  return path.map(({ name }) => name).join(".");
}

/** Whether `path` is `other` or leads into it. */
export function isWithin(path: FieldPath, other: FieldPath): boolean {
  return other.every((field, index) => path[index] === field);
}

/** The field that ends the path. */
export function leafOf(path: FieldPath): DescField {
  const leaf = path.at(-1);
  if (leaf === undefined) throw new Error("an empty field path");
  return leaf;
}

/** The message that holds the leaf, or undefined where the messages on the way are not set. */
export function findOwner(root: ReflectMessage, path: FieldPath): ReflectMessage | undefined {
  let owner = root;
  for (const field of path.slice(0, -1)) {
    if (field.fieldKind !== "message" || !owner.isSet(field)) return undefined;
    owner = owner.get(field);
  }
  return owner;
}

/**
 * Sets the leaf from its JSON and makes the messages on the way. Throws `INVALID_ARGUMENT` naming the field if the JSON is no
 * value of it, or if another member of its oneof is set.
 */
export function setFromJson(root: ReflectMessage, path: FieldPath, json: JsonValue): void {
  const owner = makeOwner(root, path);
  const leaf = leafOf(path);
  requireOneofFree(owner, leaf, path);
  try {
    mergeFromJson(owner.desc, owner.message, { [leaf.name]: json });
  } catch {
    throw notOfForm(path);
  }
}

/** The error for a value that is none of the leaf's. */
export function notOfForm(path: FieldPath): Error {
  return invalidArgument(formatFieldPath(path), `must be ${valueForm(leafOf(path))?.expected ?? "a valid value"}`);
}

function makeOwner(root: ReflectMessage, path: FieldPath): ReflectMessage {
  let owner = root;
  for (const field of path.slice(0, -1)) {
    if (field.fieldKind !== "message") throw new Error(`${field} has no fields`);
    requireOneofFree(owner, field, path);
    if (!owner.isSet(field)) owner.set(field, reflect(field.message));
    owner = owner.get(field);
  }
  return owner;
}

function requireOneofFree(owner: ReflectMessage, field: DescField, path: FieldPath): void {
  const other = field.oneof === undefined ? undefined : owner.oneofCase(field.oneof);
  if (other === undefined || other === field) return;
  throw invalidArgument(formatFieldPath(path), `may not be set together with ${other.name}`);
}
