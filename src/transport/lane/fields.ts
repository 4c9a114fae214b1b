import type { Fields } from "./exchange.ts";

/** What Connect's functions take and give. */
export function toHeaders(fields: Fields): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < fields.length; i += 2) headers.append(`${fields[i]}`, `${fields[i + 1]}`);
  return headers;
}

export function fromHeaders(headers: Headers): Fields {
  return [...headers].flat();
}
