import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VerifyApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type Invalid, type Valid, type Verdict, verificationErrorOf } from "../../domain/verdict.ts";
import { memoize } from "../../lib/memoize.ts";
import { CREDENTIAL_TYPE, KEY_STATUS, VERIFICATION_ERROR } from "./enums.ts";
import { timestamp } from "./key-resources.ts";

type Verification = MessageInitShape<typeof VerifyApiKeyResponseSchema>;

/** Verdicts as callers see them. Of a credential that is not valid they learn why, and nothing of its key. */
export function verificationBy(issuer: string): (verdict: Verdict) => Verification {
  // A verdict that is frozen is given again and again: what is said of it is frozen too, so that it need be written but once.
  const ofValid = memoize((verdict: Valid) => {
    const said = describe(verdict, issuer);
    return Object.isFrozen(verdict) ? Object.freeze(said) : said;
  });
  return (verdict) => (verdict.valid ? ofValid(verdict) : explain(verdict));
}

function explain({ reason: refusal, message, isStale }: Invalid): Verification {
  const errorCode = VERIFICATION_ERROR[verificationErrorOf(refusal)];
  return { isValid: false, errorCode, errorMessage: message, ...(isStale && { stale: true }) };
}

function describe({ key, scopes, expireTime, credentialType, isStale }: Valid, issuer: string): Verification {
  return {
    isValid: true,
    keyId: key.keyId,
    actorId: key.actorId,
    scopes: [...scopes],
    metadata: { ...key.metadata },
    status: KEY_STATUS.ACTIVE,
    expireTime: timestamp(expireTime),
    issuer,
    credentialType: CREDENTIAL_TYPE[credentialType],
    ...(isStale && { stale: true }),
  };
}
