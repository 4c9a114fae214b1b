/** A macaroon as any library sees it (Birgisson et al., NDSS 2014). Of these parts the chain does not sign `location`. */
export interface Macaroon {
  /** A hint where the macaroon is of use; UTF-8 on the wire. */
  readonly location: string | undefined;
  readonly identifier: Uint8Array;
  readonly caveats: readonly Caveat[];
  /** HMAC-SHA-256, 32 bytes. */
  readonly signature: Uint8Array;
}

export interface Caveat {
  /** Of a first-party caveat, the condition itself. */
  readonly identifier: Uint8Array;
  readonly thirdParty: ThirdParty | undefined;
}

/** What makes a caveat one that somebody else must discharge. */
export interface ThirdParty {
  readonly location: string | undefined;
  readonly verificationId: Uint8Array;
}

export const MACAROON_MAX_TEXT_LENGTH = 8192;
/** Bytes of the V2 form: what that text can hold. */
export const MACAROON_MAX_SIZE = (MACAROON_MAX_TEXT_LENGTH / 4) * 3;
export const MACAROON_MAX_CAVEATS = 100;
export const SIGNATURE_SIZE = 32;

/** The bytes or the text are no macaroon. The message tells where it went wrong, never what stood there. */
export class MacaroonFormatError extends Error {
  override readonly name = "MacaroonFormatError";
}
