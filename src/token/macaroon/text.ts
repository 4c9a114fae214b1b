import { MAX_CREDENTIAL_BYTES } from "../../domain/limits.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/bytes.ts";
import { type Macaroon, MacaroonFormatError } from "./format.ts";
import { decodeV2, encodeV2 } from "./v2.ts";

/** A cheap pre-check: text that starts with the version byte 2. */
const FIRST_BYTE_IS_2 = /^A[g-v]/;

/** Formats a macaroon as unpadded base64url of the V2 binary form. */
export function formatMacaroon(macaroon: Macaroon): string {
  return encodeBase64url(encodeV2(macaroon));
}

/** The exact inverse of `formatMacaroon`. Throws `MacaroonFormatError`. */
export function parseMacaroon(text: string): Macaroon {
  if (text.length > MAX_CREDENTIAL_BYTES) throw new MacaroonFormatError(`over ${MAX_CREDENTIAL_BYTES} characters`);
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw new MacaroonFormatError("not unpadded base64url");
  return decodeV2(bytes);
}

/** Returns whether a text is a well-formed V2 macaroon of any service. Does not verify the signature. */
export function looksLikeMacaroon(text: string): boolean {
  return FIRST_BYTE_IS_2.test(text) && tryParseMacaroon(text) !== undefined;
}

/** Like `parseMacaroon`, but returns undefined instead of throwing. */
export function tryParseMacaroon(text: string): Macaroon | undefined {
  try {
    return parseMacaroon(text);
  } catch (error) {
    if (error instanceof MacaroonFormatError) return undefined;
    throw error;
  }
}
