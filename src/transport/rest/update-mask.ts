import type { DescField, DescMessage, JsonObject, Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { markDerivedMask } from "../../api/v2alpha1/update-mask.ts";
import { isJsonObject } from "../../lib/json.ts";
import { findField, nameIn, valueIn } from "../wire/json/fields.ts";
import type { RestRule } from "./http-rule.ts";

export function isFieldMask({ message }: DescField): boolean {
  return message?.typeName === FieldMaskSchema.typeName;
}

/**
 * Returns a function that reads the JSON of a request. AIP-134: a PATCH without `update_mask` changes the fields present in the body.
 * Protobuf cannot distinguish an empty list from an absent one, but JSON can: `{"scopes": []}` clears the scopes. A mask with the present
 * fields is therefore added. Fields bound by the path identify the resource and are excluded. The JSON of another rule is read unchanged.
 */
export function updateReader(desc: DescMessage, binding: RestRule, read: (json: JsonObject) => Message): typeof read {
  const mask = desc.fields.find((field) => field.name === "update_mask" && isFieldMask(field));
  const resource = resourceField(desc, binding);
  if (binding.httpMethod !== "PATCH" || mask === undefined || resource?.message === undefined) return read;
  const bound = new Set(binding.variables.map(({ path }) => path.at(-1)));
  const { message } = resource;
  return (json) => {
    const stated = valueIn(json, mask);
    const value = valueIn(json, resource);
    if ((stated !== null && stated !== "") || !isJsonObject(value)) return read(json);
    const fields = Object.keys(value).map((name) => findField(message, name));
    const names = fields.flatMap((field) => (field === undefined || bound.has(field) ? [] : [field.jsonName]));
    if (names.length === 0) return read(json);
    const request = read({ ...json, [nameIn(json, mask)]: names.join(",") });
    markDerivedMask(Reflect.get(request, mask.localName));
    return request;
  };
}

/** The body field, or if the body is the whole request, its only message field except the masks. */
function resourceField(desc: DescMessage, { body }: RestRule): DescField | undefined {
  if (body.kind === "field" || body.kind === "either") return body.field;
  const messages = desc.fields.filter((field) => field.fieldKind === "message" && !isFieldMask(field));
  return messages.length === 1 ? messages[0] : undefined;
}
