/** What the program of this folder does when it is asked to. */
export type Work =
  /** `crypto.sign` in a loop over what a derived JWT signs. */
  | "sign"
  /** DeriveToken by its RPC. */
  | "derive"
  /** VerifyApiKey by its RPC of JWTs that were never seen; they are derived before, and that time does not count. */
  | "verify"
  /** `crypto.verify` in a loop over the signatures of the same JWTs. */
  | "verify-signatures";

export interface Order {
  readonly work: Work;
  /** How often. */
  readonly count: number;
}

/** Operations a second, or why there are none. */
export type Reply = { readonly rate: number } | { readonly error: string };
