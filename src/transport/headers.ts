/** Request headers by lower-case name. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Several values are joined by ", ". */
export function headerOf(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** All but the pseudo-headers of HTTP/2. */
export function headersOf(headers: Headers): [name: string, value: string][] {
  const names = Object.keys(headers).filter((name) => !name.startsWith(":"));
  return names.map((name) => [name, headerOf(headers, name) ?? ""]);
}
