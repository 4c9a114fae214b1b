import { parseSecretFormat, type SecretPrefix, secretHead } from "./format.ts";

/** What it takes to tell the kinds apart. The shapes of derived tokens are known to `token/`, a stranger on this floor. */
export interface CredentialShapes {
  /** The configured prefix of issued secrets. */
  readonly prefix: SecretPrefix;
  looksLikeJwt(text: string): boolean;
  looksLikeMacaroon(text: string): boolean;
}

export interface CredentialKind {
  /** `CredentialType` of the protos without its prefix. */
  readonly type: "ISSUED_API_KEY" | "JWT" | "MACAROON" | "IMPORTED_API_KEY";
  /** Made by a service such as ours: nothing that looks like it may be imported. */
  readonly ours: boolean;
  /** A judgement of the shape alone, never of validity. */
  readonly matches: (text: string, shapes: CredentialShapes) => boolean;
}

const IMPORTED = { type: "IMPORTED_API_KEY", ours: false, matches: () => true } as const satisfies CredentialKind;

/** The closed set of credential kinds, in the order in which they are tried: the last one takes whatever is left. */
export const CREDENTIAL_KINDS = [
  { type: "ISSUED_API_KEY", ours: true, matches: looksLikeIssuedSecret },
  { type: "JWT", ours: true, matches: (text, shapes) => shapes.looksLikeJwt(text) },
  { type: "MACAROON", ours: true, matches: (text, shapes) => shapes.looksLikeMacaroon(text) },
  IMPORTED,
] as const satisfies readonly CredentialKind[];

/** The kind of a credential. Every text has one. */
export function classify(text: string, shapes: CredentialShapes): CredentialKind {
  return CREDENTIAL_KINDS.find((kind) => kind.matches(text, shapes)) ?? IMPORTED;
}

/** Whether a text may not be imported as a raw key: it would never be verified as one. */
export function looksLikeOurs(text: string, shapes: CredentialShapes): boolean {
  return classify(text, shapes).ours;
}

/**
 * A mistyped secret with the configured prefix counts too, so that it is refused as malformed and never looked up. With
 * another prefix, which may be that of a foreign key, the checksum decides.
 */
function looksLikeIssuedSecret(text: string, { prefix }: CredentialShapes): boolean {
  return text.startsWith(secretHead(prefix)) || parseSecretFormat(text) !== undefined;
}
