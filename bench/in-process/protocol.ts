/** The operations of the program in this folder. */
export type Operation =
  /** `crypto.sign` in a loop over the signing input of a derived JWT. */
  | "sign"
  /** The RPC DeriveToken. */
  | "derive"
  /** The RPC VerifyApiKey for new JWTs. The time of deriving them is excluded. */
  | "verify"
  /** `crypto.verify` in a loop over the signatures of the same JWTs. */
  | "verify-signatures";

export interface OperationRequest {
  readonly work: Operation;
  /** Number of repetitions. */
  readonly count: number;
}

/** Operations per second, or the error. */
export type OperationResponse = { readonly rate: number } | { readonly error: string };
