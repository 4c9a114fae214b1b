import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { MACAROON_MAX_TEXT_LENGTH, type Macaroon, MacaroonFormatError } from "./format.ts";
import { decodeV2, encodeV2 } from "./v2.ts";

/** Every text whose first byte is the version 2 begins like this, and few other texts do. */
const FIRST_BYTE_IS_2 = /^A[g-v]/;

/** The text form: unpadded base64url of the V2 binary form with nothing around it. */
export function formatMacaroon(macaroon: Macaroon): string {
  return encodeBase64url(encodeV2(macaroon));
}

/** The inverse of `formatMacaroon`; what parses prints back byte for byte. Throws `MacaroonFormatError`. */
export function parseMacaroon(text: string): Macaroon {
  if (text.length > MACAROON_MAX_TEXT_LENGTH)
    throw new MacaroonFormatError(`over ${MACAROON_MAX_TEXT_LENGTH} characters`);
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw new MacaroonFormatError("not unpadded base64url");
  return decodeV2(bytes);
}

/** Whether the text is a V2 macaroon in form, of whatever service. Says nothing of its signature. */
export function looksLikeMacaroon(text: string): boolean {
  return FIRST_BYTE_IS_2.test(text) && tryParseMacaroon(text) !== undefined;
}

/** As `parseMacaroon`, with undefined for a text that is no macaroon. */
export function tryParseMacaroon(text: string): Macaroon | undefined {
  try {
    return parseMacaroon(text);
  } catch (error) {
    if (error instanceof MacaroonFormatError) return undefined;
    throw error;
  }
}
