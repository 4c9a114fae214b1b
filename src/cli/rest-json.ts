import { createRegistry, type Message, toJson } from "@bufbuild/protobuf";
import { file_keyhold_v2alpha1_api_key } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { file_keyhold_v2alpha1_api_keys } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { file_keyhold_v2alpha1_hmac_keys } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { file_keyhold_v2alpha1_imported_api_keys } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { file_keyhold_v2alpha1_issued_api_keys } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { file_keyhold_v2alpha1_self_service } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { type OutputOptions, writeObject } from "./output.ts";

const registry = createRegistry(
  file_keyhold_v2alpha1_api_key,
  file_keyhold_v2alpha1_api_keys,
  file_keyhold_v2alpha1_hmac_keys,
  file_keyhold_v2alpha1_imported_api_keys,
  file_keyhold_v2alpha1_issued_api_keys,
  file_keyhold_v2alpha1_self_service,
);

/** Returns a message of the API as JSON in the format of REST. */
export function restJson(message: Message): JsonObject {
  const schema = registry.getMessage(message.$typeName);
  const json = schema && toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
  if (!isJsonObject(json)) throw new TypeError(`${message.$typeName} is not an object in JSON`);
  return json;
}

/** Writes a message of the API: JSON in the format of REST, or its fields for people. */
export function writeMessage(message: Message, options: OutputOptions): Promise<void> {
  return writeObject(restJson(message), options);
}
