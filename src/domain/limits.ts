import { invalidArgument } from "./errors.ts";

/** Maximum size of a credential, in bytes. A text with more characters has more bytes. */
export const MAX_CREDENTIAL_BYTES = 8192;

/** Maximum older secrets in their grace period per key: bounds the row and the work of a verification. */
export const MAX_GRACE_SECRETS = 16;

const MAX_METADATA_BYTES = 4096;
const MAX_CLAIMS_BYTES = 4096;

/** Rejects metadata above 4 KiB: the UTF-8 bytes of all keys and values. Throws `INVALID_ARGUMENT` naming `field`. */
export function checkMetadata(metadata: Readonly<Record<string, string>>, field: string): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(metadata)) bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  if (bytes > MAX_METADATA_BYTES)
    throw invalidArgument(field, `has ${bytes} bytes, but the maximum is ${MAX_METADATA_BYTES}`, "TOO_LARGE");
}

/** Rejects claims above 4 KiB of JSON. Throws `INVALID_ARGUMENT` naming `field`. */
export function checkClaimsSize(claims: object, field: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(claims));
  if (bytes > MAX_CLAIMS_BYTES)
    throw invalidArgument(field, `has ${bytes} bytes of JSON, but the maximum is ${MAX_CLAIMS_BYTES}`, "TOO_LARGE");
}
