/** Returns the names and values, still encoded, of application/x-www-form-urlencoded, such as a query string. */
export function splitForm(text: string): (readonly [name: string, value: string])[] {
  return text.split("&").flatMap((pair) => {
    const [name = "", ...value] = pair.split("=");
    return pair === "" ? [] : [[name, value.join("=")]];
  });
}

/** Decodes a name or value, where `+` is a space. Returns undefined for a malformed percent-encoding. */
export function decodeFormText(text: string): string | undefined {
  return decodePercent(text.replaceAll("+", " "));
}

/** Returns undefined for a malformed percent-encoding, or one that is not UTF-8. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
