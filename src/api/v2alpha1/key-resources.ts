import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type ApiKeySchema,
  HashAlgorithm,
  KeyStatus,
  RevocationReason,
} from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import type { RevokeApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { ImportedApiKeySchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { IssuedApiKeySchema } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { type ApiKey, isExpired, type PreviousSecret, statusAt } from "../../domain/key.ts";
import { KEY_KIND } from "./enums.ts";
import { quotas, rateLimits } from "./rate-limits.ts";

export function timestamp(time: Date | null): Timestamp | undefined {
  return time === null ? undefined : timestampFromDate(time);
}

/** `now` decides the status. */
export function importedApiKey(key: ApiKey, now: number): MessageInitShape<typeof ImportedApiKeySchema> {
  return { ...commonFields(key, now), ...adoptionFields(key) };
}

function commonFields(key: ApiKey, now: number) {
  return {
    keyId: key.keyId,
    name: key.name,
    actorId: key.actorId,
    scopes: [...key.scopes],
    status: KeyStatus[statusAt(key, now)],
    metadata: { ...key.metadata },
    createTime: timestamp(key.createTime),
    updateTime: timestamp(key.updateTime),
    expireTime: timestamp(key.expireTime),
    lastUsedTime: timestamp(key.lastUsedTime),
    lastUsedAddress: key.lastUsedAddress ?? undefined,
    revokeTime: timestamp(key.revokeTime),
    revocationReason: key.revocationReason === null ? undefined : RevocationReason[key.revocationReason],
    revocationDescription: key.revocationDescription ?? undefined,
    hint: key.hint,
    disableTime: timestamp(key.disableTime),
    disableReason: key.disableReason ?? undefined,
    ipRestriction: key.allowedCidrs === null ? undefined : { allowedCidrs: [...key.allowedCidrs] },
    rateLimits: rateLimits(key.rateLimits),
    quotas: quotas(key.quotas),
    createdBy: key.createdBy ?? undefined,
    revokedBy: key.revokedBy ?? undefined,
    disabledBy: key.disabledBy ?? undefined,
  };
}

function adoptionFields({ hashAlgorithm, adoptBeforeTime, adoptTime }: ApiKey) {
  return {
    hashAlgorithm: hashAlgorithm === null ? undefined : HashAlgorithm[hashAlgorithm],
    adoptBeforeTime: timestamp(adoptBeforeTime),
    adoptTime: timestamp(adoptTime),
  };
}

function previousSecret({ hint, createTime, expireTime, lastUsedTime }: PreviousSecret) {
  return {
    hint: hint ?? "",
    createTime: timestamp(createTime),
    expireTime: timestamp(expireTime),
    lastUsedTime: timestamp(lastUsedTime),
  };
}

export function issuedApiKey(key: ApiKey, now: number): MessageInitShape<typeof IssuedApiKeySchema> {
  return {
    ...commonFields(key, now),
    rotateTime: timestamp(key.rotateTime),
    previousSecrets: key.previousSecrets.filter((secret) => !isExpired(secret, now)).map(previousSecret),
    restrictedToActorIds: [...(key.restrictedToActorIds ?? [])],
  };
}

export function apiKey(key: ApiKey, now: number): MessageInitShape<typeof ApiKeySchema> {
  return { ...issuedApiKey(key, now), ...adoptionFields(key), $typeName: undefined, kind: KEY_KIND[key.kind] };
}

/** Returns the response of both revocation RPCs. */
export function revokedApiKey(key: ApiKey, now: number): MessageInitShape<typeof RevokeApiKeyResponseSchema> {
  return {
    keyId: key.keyId,
    status: KeyStatus[statusAt(key, now)],
    revokeTime: timestamp(key.revokeTime),
    revocationReason: RevocationReason[key.revocationReason ?? "UNSPECIFIED"],
  };
}
