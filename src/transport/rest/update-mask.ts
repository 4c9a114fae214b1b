import { create, type DescField, type DescMessage, isMessage, type JsonObject } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { isJsonObject } from "../../lib/json.ts";
import type { Binding } from "./binding.ts";
import { findField } from "./field-path.ts";

/** Fills the request's `update_mask` from the JSON of the request. */
export type FillUpdateMask = (request: ReflectMessage, json: JsonObject) => void;

/**
 * AIP-134: a PATCH without `update_mask` changes the fields that the resource in the body has. Protobuf cannot tell an empty
 * list from an absent one, the JSON can: `{"scopes": []}` clears the scopes. Fields that the path binds name the resource and are
 * left out. Undefined where the binding is none of an update.
 */
export function updateMaskFiller(desc: DescMessage, binding: Binding): FillUpdateMask | undefined {
  const mask = desc.fields.filter(isFieldMask).find(({ name }) => name === "update_mask");
  const resource = resourceField(desc, binding);
  if (binding.httpMethod !== "PATCH" || mask === undefined || resource?.message === undefined) return undefined;
  const bound = new Set(boundFields(binding, resource));
  const resourceDesc = resource.message;
  return (request, json) => {
    if (maskPaths(request, mask).length > 0) return;
    const value = json[resource.name] ?? json[resource.jsonName];
    const fields = isJsonObject(value) ? Object.keys(value).map((name) => findField(resourceDesc, name)) : [];
    const paths = fields.flatMap((field) => (field === undefined || bound.has(field) ? [] : [field.name]));
    if (paths.length > 0) request.set(mask, reflect(FieldMaskSchema, create(FieldMaskSchema, { paths })));
  };
}

type MessageField = DescField & { fieldKind: "message" };

export function isFieldMask(field: DescField): field is MessageField {
  return field.fieldKind === "message" && field.message.typeName === FieldMaskSchema.typeName;
}

/** The field of the body, or where the body is the whole request its only message but for the masks. */
function resourceField(desc: DescMessage, { body }: Binding): DescField | undefined {
  if (body.kind === "field" || body.kind === "either") return body.field;
  const messages = desc.fields.filter((field) => field.fieldKind === "message" && !isFieldMask(field));
  return messages.length === 1 ? messages[0] : undefined;
}

function boundFields({ variables }: Binding, resource: DescField): readonly DescField[] {
  return variables.flatMap(({ path: [first, second, ...more] }) =>
    first === resource && second !== undefined && more.length === 0 ? [second] : [],
  );
}

function maskPaths(request: ReflectMessage, mask: MessageField): readonly string[] {
  const { message } = request.get(mask);
  return isMessage(message, FieldMaskSchema) ? message.paths : [];
}
