import { isJsonObject, type JsonObject, parseJson } from "../../lib/json.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";

export function encodeJson(value: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(value), "utf8");
}

/** The JSON object that the bytes spell in UTF-8, or undefined. Of a member given twice the last one counts. */
export function decodeJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const text = decodeUtf8(bytes);
  const value = text === undefined ? undefined : parseJson(text);
  return isJsonObject(value) ? value : undefined;
}
