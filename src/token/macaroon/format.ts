import { MAX_CREDENTIAL_BYTES } from "../../domain/limits.ts";

/** A macaroon (Birgisson et al., NDSS 2014). The signature does not cover `location`. */
export interface Macaroon {
  /** A hint of where the macaroon is used; UTF-8 on the wire. */
  readonly location: string | undefined;
  readonly identifier: Uint8Array;
  readonly caveats: readonly Caveat[];
  /** HMAC-SHA-256, 32 bytes. */
  readonly signature: Uint8Array;
}

export interface Caveat {
  /** For a first-party caveat, the condition itself. */
  readonly identifier: Uint8Array;
  readonly thirdParty: ThirdParty | undefined;
}

/** The part of a caveat that a third party must discharge. */
export interface ThirdParty {
  readonly location: string | undefined;
  readonly verificationId: Uint8Array;
}

/** Size limit of the V2 binary form: what a text of the maximum length can hold. */
export const MACAROON_MAX_SIZE = (MAX_CREDENTIAL_BYTES / 4) * 3;
export const MACAROON_MAX_CAVEATS = 100;
export const SIGNATURE_SIZE = 32;

/** Thrown for a malformed macaroon. The message names the position, never the content. */
export class MacaroonFormatError extends Error {
  override readonly name = "MacaroonFormatError";
}
