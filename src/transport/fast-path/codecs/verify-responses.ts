import { create, type DescEnum, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { KeyStatusSchema } from "../../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  type BatchVerifyApiKeysResponseSchema,
  CredentialTypeSchema,
  VerificationErrorSchema,
  type VerifyApiKeyResponseSchema,
} from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { onceFrozen } from "../../../lib/once-frozen.ts";
import { quote } from "../../../lib/quote.ts";

type Verification = MessageInitShape<typeof VerifyApiKeyResponseSchema>;
type Verifications = MessageInitShape<typeof BatchVerifyApiKeysResponseSchema>;

/**
 * Writes a `VerifyApiKeyResponse` as JSON (contract §2): the text that `JSON.stringify(toJson(…))` of the library gives, without the
 * message and the JSON value in between. Frozen verifications are written once.
 */
export const writeVerifyJson = onceFrozen((verification: Verification): string => {
  const { isValid = false, keyId, actorId, scopes = [], metadata = {}, status, expireTime } = verification;
  const { issuer, credentialType, errorCode, errorMessage } = verification;
  let text = `{"is_valid":${isValid}`;
  if (keyId !== undefined) text += `,"key_id":${quote(keyId)}`;
  if (actorId !== undefined) text += `,"actor_id":${quote(actorId)}`;
  text += `,"scopes":[${scopes.map(quote).join(",")}],"metadata":{${entriesOf(metadata)}}`;
  if (status !== undefined) text += `,"status":${statusName(status)}`;
  if (expireTime !== undefined) text += `,"expire_time":${timeText(expireTime)}`;
  if (issuer !== undefined) text += `,"issuer":${quote(issuer)}`;
  if (credentialType !== undefined) text += `,"credential_type":${credentialTypeName(credentialType)}`;
  if (errorCode !== undefined) text += `,"error_code":${errorName(errorCode)}`;
  if (errorMessage !== undefined) text += `,"error_message":${quote(errorMessage)}`;
  return `${text}}`;
});

/** Writes a `BatchVerifyApiKeysResponse` likewise. */
export function writeBatchVerifyJson({ results = [] }: Verifications): string {
  return `{"results":[${results.map(writeVerifyJson).join(",")}]}`;
}

const statusName = nameIn(KeyStatusSchema);
const credentialTypeName = nameIn(CredentialTypeSchema);
const errorName = nameIn(VerificationErrorSchema);

/** The quoted name of an enum value, or the number of one that has no name. */
function nameIn({ values }: DescEnum): (value: number) => string {
  const names = new Map(values.map(({ number, name }) => [number, `"${name}"`]));
  return (value) => names.get(value) ?? String(value);
}

function entriesOf(metadata: Readonly<Record<string, string>>): string {
  return Object.entries(metadata)
    .map(([name, value]) => `${quote(name)}:${quote(value)}`)
    .join(",");
}

/** RFC 3339, as ProtoJSON has it. */
function timeText(time: MessageInitShape<typeof TimestampSchema>): string {
  return JSON.stringify(toJson(TimestampSchema, create(TimestampSchema, time)));
}
