import { create, type DescEnum, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { KeyStatusSchema } from "../../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  type BatchVerifyApiKeysResponseSchema,
  CredentialTypeSchema,
  VerificationErrorSchema,
  type VerifyApiKeyResponseSchema,
} from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { memoize } from "../../../lib/memoize.ts";

type Verification = MessageInitShape<typeof VerifyApiKeyResponseSchema>;
type Verifications = MessageInitShape<typeof BatchVerifyApiKeysResponseSchema>;

/**
 * Writes a `VerifyApiKeyResponse` as JSON (contract §2): the text that `JSON.stringify(toJson(…))` of the library gives, without the
 * message in between. Frozen verifications are written once.
 */
export const writeVerifyJson = memoize((verification: Verification): string => {
  const { expireTime } = verification;
  return JSON.stringify({
    is_valid: verification.isValid ?? false,
    key_id: verification.keyId,
    actor_id: verification.actorId,
    scopes: verification.scopes ?? [],
    metadata: verification.metadata ?? {},
    status: statusName(verification.status),
    expire_time: expireTime && toJson(TimestampSchema, create(TimestampSchema, expireTime)),
    issuer: verification.issuer,
    credential_type: credentialTypeName(verification.credentialType),
    error_code: errorName(verification.errorCode),
    error_message: verification.errorMessage,
    stale: verification.stale,
  });
});

/** Writes a `BatchVerifyApiKeysResponse` likewise. */
export function writeBatchVerifyJson({ results = [] }: Verifications): string {
  return `{"results":[${results.map(writeVerifyJson).join(",")}]}`;
}

const statusName = nameIn(KeyStatusSchema);
const credentialTypeName = nameIn(CredentialTypeSchema);
const errorName = nameIn(VerificationErrorSchema);

/** The name of an enum value, or the number of one that has no name. */
function nameIn({ values }: DescEnum): (value: number | undefined) => string | number | undefined {
  const names = new Map<number | undefined, string>(values.map(({ number, name }) => [number, name]));
  return (value) => names.get(value) ?? value;
}
