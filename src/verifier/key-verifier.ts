import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { VerificationError, type VerifyApiKeyResponse } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { createKeyholdClient, type KeyholdClient, type KeyholdClientOptions } from "../client/client.ts";
import { type Clock, type Monotonic, systemClock, systemMonotonic } from "../lib/clock.ts";
import { freshnessLifetime } from "./cache-control.ts";
import {
  type RefusalReason,
  type RejectedCredential,
  refusal,
  type Verdict,
  type VerifiedKey,
  type Verifier,
} from "./verdict.ts";
import { type Answer, VerdictCache } from "./verdict-cache.ts";

/** A client, or what to make one of. */
export type KeyVerifierOptions = ({ readonly client: Pick<KeyholdClient, "apiKeys"> } | KeyholdClientOptions) & {
  /**
   * Milliseconds for which a verdict may be used again, where the answer does not say. 0 if absent, for Keyhold does not say: each
   * credential is asked about, and revoked means revoked. With it, a key that was revoked may be good here for so long.
   */
  readonly maxAgeMs?: number;
  /** Verdicts that are remembered at the most; 10,000 if absent. */
  readonly cacheSize?: number;
  /** The time of day, by which credentials expire. */
  readonly clock?: Clock;
  /** A clock that never steps, by which verdicts grow old. */
  readonly monotonic?: Monotonic;
};

/** A verifier of credentials of every kind, which asks Keyhold. The token of its client needs the scope `keyhold:verify`. */
export function createKeyVerifier(options: KeyVerifierOptions): Verifier<VerifiedKey> {
  const { maxAgeMs, cacheSize = 10_000, clock = systemClock, monotonic = systemMonotonic } = options;
  const client = "client" in options ? options.client : createKeyholdClient(options);
  const ask = (credential: string) => askKeyhold(client, credential, maxAgeMs, clock);
  const cache = new VerdictCache(ask, { maxAgeMs: maxAgeMs ?? 0, size: cacheSize, monotonic });
  return { verify: (credential) => cache.verify(credential) };
}

async function askKeyhold(
  { apiKeys }: Pick<KeyholdClient, "apiKeys">,
  credential: string,
  maxAgeMs: number | undefined,
  clock: Clock,
): Promise<Answer> {
  let allowed: number | undefined;
  const onHeader = (headers: Headers) => {
    allowed = freshnessLifetime(headers);
  };
  try {
    const verdict = toVerdict(await apiKeys.verifyApiKey({ credential }, { onHeader }));
    return { verdict, lifetimeMs: lifetimeOf(verdict, allowed, maxAgeMs, clock) };
  } catch (error) {
    return { verdict: toRefusal(error), lifetimeMs: 0 };
  }
}

/** The shorter of what the answer allows and what the caller does, and no longer than the credential lives. */
function lifetimeOf(
  verdict: Verdict<VerifiedKey>,
  allowed: number | undefined,
  maxAgeMs: number | undefined,
  clock: Clock,
): number {
  if (!verdict.ok && verdict.reason === "UNAVAILABLE") return 0;
  const rest =
    verdict.ok && verdict.credential.expireTime ? verdict.credential.expireTime.getTime() - clock.now() : Infinity;
  return Math.min(allowed ?? maxAgeMs ?? 0, maxAgeMs ?? Infinity, rest);
}

const REASONS: Readonly<Record<VerificationError, RefusalReason>> = {
  [VerificationError.UNSPECIFIED]: "UNAVAILABLE",
  [VerificationError.INVALID_FORMAT]: "INVALID_FORMAT",
  [VerificationError.EXPIRED]: "EXPIRED",
  [VerificationError.REVOKED]: "REVOKED",
  [VerificationError.NOT_FOUND]: "NOT_FOUND",
  [VerificationError.SIGNATURE_INVALID]: "SIGNATURE_INVALID",
  [VerificationError.INTERNAL]: "UNAVAILABLE",
};

/** An error code of a later server that we do not know is no verdict that we could tell. */
function toVerdict(answer: VerifyApiKeyResponse): Verdict<VerifiedKey> {
  const { isValid, errorCode = VerificationError.UNSPECIFIED, errorMessage = "the credential is not valid" } = answer;
  if (!isValid) return refusal(REASONS[errorCode] ?? "UNAVAILABLE", errorMessage);
  const { keyId = "", actorId = "", scopes, issuer = "", expireTime, credentialType = 0, metadata } = answer;
  const credential = { keyId, actorId, scopes, issuer, credentialType, metadata };
  return { ok: true, credential: expireTime ? { ...credential, expireTime: timestampDate(expireTime) } : credential };
}

/** What a client cannot be told is no verdict: the server is away, or does not let us ask. */
function toRefusal(error: unknown): RejectedCredential {
  if (ConnectError.from(error).code === Code.InvalidArgument) {
    return refusal("INVALID_FORMAT", "the credential is empty or too long");
  }
  return refusal("UNAVAILABLE", "Keyhold cannot be asked", error);
}
