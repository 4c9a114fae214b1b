import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { type OutputOptions, writeFields, writeJson } from "./output.ts";

/** A message as the REST paths answer it. */
export function restJson<I extends DescMessage>(schema: I, message: MessageShape<I>): JsonObject {
  const json = toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
  if (!isJsonObject(json)) throw new TypeError(`${schema.typeName} is no object in JSON`);
  return json;
}

/** Writes one object: as the REST paths answer it, or its fields for people. */
export function writeObject(json: JsonObject, options: OutputOptions): Promise<void> {
  return options.json === true ? writeJson(json) : writeFields(json);
}
