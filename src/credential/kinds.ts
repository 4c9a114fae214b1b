import type { CredentialType } from "../domain/verdict.ts";
import { parseSecretFormat, type SecretPrefix, secretHead } from "./format.ts";

/** What distinguishes the kinds. The shapes of derived tokens are passed in, since `token/` is on the same layer. */
export interface CredentialShapes {
  /** The configured prefix of issued secrets. */
  readonly prefix: SecretPrefix;
  looksLikeJwt(text: string): boolean;
  looksLikeMacaroon(text: string): boolean;
}

export interface CredentialKind {
  readonly type: CredentialType;
  /** Tests the shape only, not validity. */
  readonly matches: (text: string, shapes: CredentialShapes) => boolean;
}

const IMPORTED = { type: "IMPORTED_API_KEY", matches: () => true } as const satisfies CredentialKind;

/** The closed set of credential kinds, in the order in which they are tried; the last one matches everything. */
export const CREDENTIAL_KINDS = [
  { type: "ISSUED_API_KEY", matches: looksLikeIssuedSecret },
  { type: "JWT", matches: (text, shapes) => shapes.looksLikeJwt(text) },
  { type: "MACAROON", matches: (text, shapes) => shapes.looksLikeMacaroon(text) },
  IMPORTED,
] as const satisfies readonly CredentialKind[];

/** Returns the kind of a credential. Every text has one. */
export function classify(text: string, shapes: CredentialShapes): CredentialKind {
  return CREDENTIAL_KINDS.find((kind) => kind.matches(text, shapes)) ?? IMPORTED;
}

/** Returns whether a text has the shape of a credential issued by Keyhold. Such a text may not be imported: it would not verify. */
export function looksLikeOurs(text: string, shapes: CredentialShapes): boolean {
  return classify(text, shapes).type !== "IMPORTED_API_KEY";
}

/**
 * A mistyped secret with the configured prefix matches too, so that it is rejected as malformed without a lookup. With any other prefix,
 * which may be another vendor's, the checksum decides.
 */
function looksLikeIssuedSecret(text: string, { prefix }: CredentialShapes): boolean {
  return text.startsWith(secretHead(prefix)) || parseSecretFormat(text) !== undefined;
}
