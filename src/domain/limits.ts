import { invalidArgument } from "./errors.ts";

const MAX_METADATA_BYTES = 4096;
const MAX_CLAIMS_BYTES = 4096;

/** Each scope once, in the order given. */
export function uniqueScopes(scopes: readonly string[]): string[] {
  return [...new Set(scopes)];
}

/** At most 4 KiB of UTF-8, keys and values together (contract §3). */
export function checkMetadata(metadata: Readonly<Record<string, string>>, field: string): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(metadata)) bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  if (bytes > MAX_METADATA_BYTES) throw invalidArgument(field, `has ${bytes} bytes, more than ${MAX_METADATA_BYTES}`);
}

/** At most 4 KiB as JSON (contract §3). */
export function checkClaimsSize(claims: object, field: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(claims));
  if (bytes > MAX_CLAIMS_BYTES)
    throw invalidArgument(field, `has ${bytes} bytes of JSON, more than ${MAX_CLAIMS_BYTES}`);
}
