import type { MessageInitShape } from "@bufbuild/protobuf";
import { KeyStatus } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  CheckResult,
  CredentialType,
  type ExplainApiKeyRequest,
  type ExplainApiKeyResponseSchema,
  VerificationCheck,
  VerificationError,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { parseKeyId, statusAt } from "../../domain/key.ts";
import { verificationErrorOf } from "../../domain/verdict.ts";
import type { ExplainedSubject, Explanation } from "../../verify/explain.ts";
import { limitStatuses } from "./rate-limits.ts";

/** Returns what a request asks to explain. Throws `INVALID_ARGUMENT` unless it is one of a credential and a key. */
export function readSubject({ credential, keyId }: ExplainApiKeyRequest): ExplainedSubject {
  if (credential === "" && keyId === "") {
    throw invalidArgument("credential", "is required unless key_id is set", "FIELD_REQUIRED");
  }
  if (keyId === "") return { credential };
  if (credential !== "")
    throw invalidArgument("key_id", "must not be set together with credential", "VALUE_NOT_ALLOWED");
  return { keyId: parseKeyId(keyId, "key_id") };
}

/** Returns the response of an explanation; `now` decides the status of the key. */
export function explanation(
  { verdict, credentialType, key, checks, limits }: Explanation,
  now: number,
): MessageInitShape<typeof ExplainApiKeyResponseSchema> {
  const rejection = verdict.valid ? undefined : verdict;
  return {
    isValid: verdict.valid,
    errorCode: rejection && VerificationError[verificationErrorOf(rejection.reason)],
    errorMessage: rejection?.message,
    checks: checks.map(({ name, result, detail }) => ({
      name: VerificationCheck[name],
      result: CheckResult[result],
      detail,
    })),
    credentialType: CredentialType[credentialType],
    ...(key !== null && { keyId: key.keyId, actorId: key.actorId, status: KeyStatus[statusAt(key, now)] }),
    missingScopes: [...(rejection?.missingScopes ?? [])],
    limits: limitStatuses(limits),
  };
}
