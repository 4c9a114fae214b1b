import { createRegistry, type Message, toJson } from "@bufbuild/protobuf";
import { file_keyhold_v2alpha1_actors } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { file_keyhold_v2alpha1_api_key } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { file_keyhold_v2alpha1_api_keys } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { file_keyhold_v2alpha1_audit } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { file_keyhold_v2alpha1_hmac_keys } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { file_keyhold_v2alpha1_imported_api_keys } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { file_keyhold_v2alpha1_issued_api_keys } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { file_keyhold_v2alpha1_self_service } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { file_keyhold_v2alpha1_usage } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { file_keyhold_v2alpha1_webhooks } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { invalidArgument } from "../domain/errors.ts";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { fieldCell, jsonText, note, type OutputOptions, tableText, write, writeObject } from "./output.ts";

const registry = createRegistry(
  file_keyhold_v2alpha1_actors,
  file_keyhold_v2alpha1_api_key,
  file_keyhold_v2alpha1_api_keys,
  file_keyhold_v2alpha1_audit,
  file_keyhold_v2alpha1_hmac_keys,
  file_keyhold_v2alpha1_imported_api_keys,
  file_keyhold_v2alpha1_issued_api_keys,
  file_keyhold_v2alpha1_self_service,
  file_keyhold_v2alpha1_usage,
  file_keyhold_v2alpha1_webhooks,
);

/** Returns a message of the API as JSON in the format of REST. */
export function restJson(message: Message): JsonObject {
  const schema = registry.getMessage(message.$typeName);
  const json = schema && toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
  if (!isJsonObject(json)) throw new TypeError(`${message.$typeName} is not a JSON object`);
  return json;
}

/** Writes a message of the API: JSON in the format of REST, the value of one field, or its fields for people. */
export function writeMessage(message: Message, options: OutputOptions): Promise<void> {
  if (options.output === undefined) return writeObject(restJson(message), options);
  return write(`${fieldOf(message, options.output)}\n`);
}

/**
 * Returns the value of a field of a message for scripts: `name`, `metadata.plan`, or `id` for its identifier. Empty if it is not set. Throws
 * `INVALID_ARGUMENT` if there is no such field.
 */
export function fieldOf(message: Message, path: string): string {
  const names = registry.getMessage(message.$typeName)?.fields.map(({ name }) => name) ?? [];
  const [first = "", ...rest] = path.split(".");
  const name = first === "id" ? names.find((field) => field.endsWith("_id")) : names.find((field) => field === first);
  if (name === undefined) throw invalidArgument("--output", `must be one of id, ${names.join(", ")}`);
  const value = restJson(message)[name];
  const selected = rest.length > 0 && isJsonObject(value) ? value[rest.join(".")] : value;
  return typeof selected === "string" ? selected : (JSON.stringify(selected) ?? "");
}

/**
 * Writes messages page by page: as a JSON array with one per line, as the values of one field, or as a table with these titles by field of
 * the record of a message.
 */
export async function writeList<M extends Message>(
  pages: AsyncIterable<readonly M[]> | Iterable<readonly M[]>,
  titles: Readonly<Record<string, string>>,
  none: string,
  { json = false, output }: OutputOptions,
  recordOf: (message: M) => JsonObject = restJson,
): Promise<void> {
  const fields = Object.keys(titles);
  const widths: number[] = [];
  let isFirst = true;
  for await (const messages of pages) {
    if (messages.length === 0) continue;
    if (output !== undefined) await write(messages.map((message) => `${fieldOf(message, output)}\n`));
    else if (json)
      await write((isFirst ? "[\n" : ",\n") + messages.map((message) => jsonText(restJson(message))).join(",\n"));
    else {
      const rows = messages.map(recordOf).map((record) => fields.map((field) => fieldCell(field, record[field])));
      await write(tableText(rows, isFirst ? Object.values(titles) : undefined, widths));
    }
    isFirst = false;
  }
  if (json) await write(isFirst ? "[]\n" : "\n]\n");
  else if (isFirst && output === undefined) note(none);
}
