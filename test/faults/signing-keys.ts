import type { Credential } from "./register.ts";

/** Model of a signing key: from the acknowledgement of its revocation on, no node accepts a token that it signed. */

/** A revocation of a signing key. Times are of one monotonic clock. */
export interface KeyRevocation {
  readonly kid: string;
  readonly began: number;
  /** Null: no response; then it takes effect at any time after it began, or never. */
  readonly acknowledged: number | null;
}

/** A verdict on a credential. */
export interface TokenVerdict {
  readonly credential?: Credential;
  readonly began: number;
  readonly ended: number;
  readonly observed: string;
}

const REJECTED = "SIGNATURE_INVALID";

/** Returns the verdicts on tokens that were judged by more than their signature after their signing key had been revoked. */
export function acceptedTokens<T extends TokenVerdict>(
  revocations: readonly KeyRevocation[],
  verdicts: readonly T[],
): T[] {
  return verdicts.filter(
    (verdict) =>
      verdict.observed !== REJECTED &&
      revocationsOf(revocations, verdict).some(({ acknowledged }) => (acknowledged ?? verdict.began) < verdict.began),
  );
}

/** Returns whether a verdict rejects a token whose signing key may have been revoked. Such a verdict says nothing of the key of the token. */
export function isRejectedByRevocation(revocations: readonly KeyRevocation[], verdict: TokenVerdict): boolean {
  if (verdict.observed !== REJECTED) return false;
  return revocationsOf(revocations, verdict).some(({ began }) => began <= verdict.ended);
}

function revocationsOf(revocations: readonly KeyRevocation[], { credential }: TokenVerdict): readonly KeyRevocation[] {
  if (revocations.length === 0 || credential?.type !== "JWT") return [];
  const kid = kidOf(credential.text);
  return revocations.filter((one) => one.kid === kid);
}

/** By text, of which there are many repetitions. */
const kids = new Map<string, string>();

/** Returns the `kid` of a JWT. */
export function kidOf(token: string): string {
  const known = kids.get(token);
  if (known !== undefined) return known;
  const [header = ""] = token.split(".");
  const { kid } = JSON.parse(Buffer.from(header, "base64url").toString());
  kids.set(token, kid);
  return kid;
}
