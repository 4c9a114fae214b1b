import { isJsonObject, type JsonObject, parseJson } from "../../lib/json.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";

export function encodeJson(value: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(value), "utf8");
}

/** Decodes a JSON object in UTF-8; undefined if it is malformed. The last of duplicate members wins. */
export function decodeJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const text = decodeUtf8(bytes);
  const value = text === undefined ? undefined : parseJson(text);
  return isJsonObject(value) ? value : undefined;
}
