import { isJsonObject, type JsonObject } from "../../lib/json.ts";

/** A byte order mark is left in, where `JSON.parse` refuses it (RFC 8259 §8.1). */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function encodeJson(value: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(value), "utf8");
}

/** The JSON object that the bytes spell in UTF-8, or undefined. Of a member given twice the last one counts. */
export function decodeJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
