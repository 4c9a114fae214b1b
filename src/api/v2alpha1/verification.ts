import { fromJson, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { KeyStatus } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  CredentialType,
  VerificationError,
  type VerifyApiKeyResponseSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { errorSize, responseSize } from "../../domain/response-size.ts";
import { type Invalid, type Valid, type Verdict, verificationErrorOf } from "../../domain/verdict.ts";
import type { JsonObject } from "../../lib/json.ts";
import { memoize } from "../../lib/memoize.ts";
import type { CacheMode } from "../../verify/reader.ts";
import type { Call } from "../rpc.ts";
import { timestamp } from "./key-resources.ts";

/** Returns the cache mode requested by `Cache-Control` (RFC 9111 §5.2.1), as a header or gRPC metadata. Ignores other directives. */
export function cacheModeOf(call: Call): CacheMode {
  const header = call.header("cache-control");
  if (header === undefined) return "default";
  const directives = header.toLowerCase().split(",").map(nameOf);
  if (directives.includes("no-store")) return "no-store";
  return directives.includes("no-cache") ? "no-cache" : "default";
}

function nameOf(directive: string): string {
  const [name = ""] = directive.split("=");
  return name.trim();
}

type Verification = MessageInitShape<typeof VerifyApiKeyResponseSchema>;

/**
 * Returns a function from a verdict to its response, which says why a credential is invalid, and nothing about its key; `bytes` is an upper
 * bound of its size in Protobuf.
 */
export function verificationBy(issuer: string) {
  const responseTo = memoize((verdict: Valid) => describe(verdict, issuer));
  const ofValid = memoize((verdict: Valid) => {
    const { actorId, metadata } = verdict.key;
    const claims = verdict.token === null ? 0 : claimsSize(verdict.token.claims);
    const bytes = responseSize({ actorId, metadata, scopes: verdict.scopes }) + Buffer.byteLength(issuer) + claims;
    return { response: responseTo(verdict), bytes };
  });
  const ofInvalid = ({ reason, message, isStale, missingScopes, credential }: Invalid) => {
    const errorCode = VerificationError[verificationErrorOf(reason)];
    const rejection = { isValid: false, errorCode, errorMessage: message, ...(isStale && { stale: true }) };
    if (missingScopes === undefined || credential === undefined) {
      return { response: rejection, bytes: errorSize(message) };
    }
    // With the identity, so that the caller can answer 403 and log who it was.
    const { response, bytes } = ofValid(credential);
    return {
      response: { ...response, ...rejection, missingScopes: [...missingScopes] },
      bytes: bytes + errorSize(message) + missingScopes.reduce((sum, scope) => sum + scope.length + 3, 0),
    };
  };
  return (verdict: Verdict) => (verdict.valid ? ofValid(verdict) : ofInvalid(verdict));
}

function claimsSize(claims: JsonObject): number {
  return Object.keys(claims).length === 0 ? 0 : toBinary(StructSchema, fromJson(StructSchema, { ...claims })).length;
}

function describe({ key, scopes, expireTime, credentialType, token, isStale }: Valid, issuer: string): Verification {
  return {
    isValid: true,
    keyId: key.keyId,
    actorId: key.actorId,
    scopes: [...scopes],
    metadata: { ...key.metadata },
    status: KeyStatus.ACTIVE,
    expireTime: timestamp(expireTime),
    issuer,
    credentialType: CredentialType[credentialType],
    ...(token !== null && { claims: { ...token.claims } }),
    ...(isStale && { stale: true }),
  };
}
