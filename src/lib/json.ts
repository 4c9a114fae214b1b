/** A JSON value (RFC 8259) as returned by `JSON.parse`. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export interface JsonObject {
  [name: string]: JsonValue;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses JSON. Returns undefined on a syntax error. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns whether two JSON values are equal, ignoring member order. Iterative: `isDeepStrictEqual` recurses and can exhaust the stack on a
 * value as deeply nested as a macaroon can hold.
 */
export function equalJson(a: JsonValue, b: JsonValue): boolean {
  const pairs: [JsonValue, JsonValue][] = [[a, b]];
  for (const [left, right] of pairs) {
    if (left === right) continue;
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right)) return false;
    const members = Object.entries(left);
    const others = new Map<string, JsonValue>(Object.entries(right));
    if (members.length !== others.size) return false;
    for (const [name, member] of members) {
      const other = others.get(name);
      if (other === undefined) return false;
      pairs.push([member, other]);
    }
  }
  return true;
}

function isContainer(value: JsonValue): value is Exclude<JsonValue, string | number | boolean | null> {
  return typeof value === "object" && value !== null;
}
