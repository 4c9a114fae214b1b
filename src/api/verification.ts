import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VerifyApiKeyResponseSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type Verdict, verificationErrorOf } from "../record/verdict.ts";
import { CREDENTIAL_TYPE, KEY_STATUS, VERIFICATION_ERROR } from "./enums.ts";
import { timestamp } from "./records.ts";

/** A verdict as callers see it. Of a credential that is not valid they learn why, and nothing of its key. */
export function verification(verdict: Verdict, issuer: string): MessageInitShape<typeof VerifyApiKeyResponseSchema> {
  if (!verdict.valid) {
    const errorCode = VERIFICATION_ERROR[verificationErrorOf(verdict.refusal)];
    return { isValid: false, errorCode, errorMessage: verdict.message };
  }
  const { key, scopes, expireTime, credentialType } = verdict;
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
  };
}
