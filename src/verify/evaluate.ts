import { type KeySecret, statusAt } from "../domain/key.ts";
import { invalid, type Valid, type Verdict } from "../domain/verdict.ts";
import { share } from "../lib/memoize.ts";
import { belongsTo, type Identified } from "./identified.ts";
import type { VerifiableRecord } from "./reader.ts";

/** Returns the verdict on a credential by its key at `now` (milliseconds). Fails closed: anything unknown is rejected. */
export function evaluate(identified: Identified, stored: VerifiableRecord | null, now: number): Verdict {
  if (stored === null || (identified.kind !== null && stored.key.kind !== identified.kind)) {
    return invalid("NOT_FOUND", "there is no such key");
  }
  const { key } = stored;
  const last = identified.last?.stored === stored ? identified.last : undefined;
  const secret = last?.secret ?? stored.secrets.find((one) => belongsTo(identified, one));
  if (secret === undefined || (secret.expireTime !== null && secret.expireTime.getTime() <= now)) {
    return invalid("SECRET_ROTATED", "the secret was rotated away", key.keyId);
  }
  const status = statusAt(key, now);
  if (status === "REVOKED") return invalid("KEY_REVOKED", "the key is revoked", key.keyId);
  if (status === "EXPIRED") return invalid("EXPIRED", "the key has expired", key.keyId);
  if (last?.isRepeated === true) return last.verdict;
  // Shared from the second time on, so that values derived from it, such as the encoded response, are cached.
  const isRepeated = last !== undefined;
  const verdict = isRepeated ? share({ ...last.verdict }) : validBy(identified, stored, secret);
  identified.last = { stored, secret, verdict, isRepeated };
  return verdict;
}

function validBy({ credentialType, token }: Identified, { key }: VerifiableRecord, secret: KeySecret): Valid {
  return {
    valid: true,
    credentialType,
    key,
    secretVersion: secret.version,
    scopes: token === null ? key.scopes : token.scopes.filter((scope) => key.scopes.includes(scope)),
    expireTime: earlier(token === null ? null : new Date(token.expireTime), earlier(secret.expireTime, key.expireTime)),
    token: token === null ? null : { tokenId: token.tokenId, claims: token.claims },
  };
}

function earlier(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}
