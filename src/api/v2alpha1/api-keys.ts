import {
  type ApiKeysService,
  VerifyApiKeyRequestSchema,
  TokenAlgorithm as WireTokenAlgorithm,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type KeyKind, parseKeyId } from "../../domain/key.ts";
import { requireFit } from "../../domain/response-size.ts";
import { invalid } from "../../domain/verdict.ts";
import { adjustQuota, parseQuotaAdjustment } from "../../keys/adjust-quota.ts";
import { deriveToken, parseDerivation, type TokenAlgorithm } from "../../keys/derive.ts";
import { revokeWithDescendants } from "../../keys/descendants.ts";
import { disableKey, enableKey } from "../../keys/disable.ts";
import type { KeyName } from "../../keys/ports.ts";
import { keyNotFound } from "../../keys/rejection.ts";
import { revokeKey } from "../../keys/revoke.ts";
import { andThen } from "../../lib/maybe-promise.ts";
import { logFieldsOf, logVerdict, logVerdicts } from "../log-fields.ts";
import { requireAdmitted } from "../own-limits.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { checkOf } from "../rules.ts";
import { bulkDisableApiKeys, bulkRevokeApiKeys, controlOf } from "./bulk-changes.ts";
import { revocationReason } from "./enums.ts";
import { explanation, readSubject } from "./explanation.ts";
import { apiKey, revokedApiKey, timestamp } from "./key-resources.ts";
import { getRow, listRow } from "./reads.ts";
import { cacheModeOf, verificationOf, verificationSize } from "./verification.ts";

/** A credential that is exchanged for a token has any audience, and comes from no address. */
const FOR_DERIVATION = { requiredScopes: [], audience: null };

/** RPCs that verify a credential log the verdict with the key themselves. */
export const apiKeys: ServiceRows<typeof ApiKeysService> = {
  deriveToken: {
    implement:
      ({ derive, verifyStrictly }) =>
      ({ credential, algorithm, ttl, scopes, audience, customClaims }) => {
        const input = { algorithm: tokenAlgorithm(algorithm), ttl, scopes, audience, claims: customClaims ?? {} };
        const derivation = parseDerivation(input, derive.limits);
        return (principal, call) =>
          andThen(verifyStrictly(principal, credential, FOR_DERIVATION), (parent) => {
            requireAdmitted(parent, call.log);
            call.log.add(logFieldsOf(parent));
            return andThen(
              deriveToken(derive, credential, parent, derivation),
              ({ expireTime, scopes, audience, ...token }) => ({
                token: { ...token, scopes: [...scopes], audience: [...audience], expireTime: timestamp(expireTime) },
              }),
            );
          });
      },
    policy: "keyhold:derive",
    idempotency: "none",
    mayAnswerFromCache: true,
  },
  verifyApiKey: {
    implement:
      ({ verify, issuer }) =>
      (request) =>
      (principal, call) =>
        andThen(verify(principal, request.credential, cacheModeOf(call), request), (verdict) => {
          requireAdmitted(verdict, call.log);
          logVerdict(call.log, verdict);
          return verificationOf(verdict, issuer);
        }),
    policy: "keyhold:verify",
    idempotency: "idempotent",
    mayAnswerFromCache: true,
  },
  // A credential that violates a rule of the request gets that as its verdict and does not affect the others.
  batchVerifyApiKeys: {
    implement:
      ({ verifyAll, issuer }) =>
      ({ requests }) => {
        const broken = requests.map((request) => {
          const [violation] = checkOf(VerifyApiKeyRequestSchema)(request);
          return violation && invalid("INVALID_FORMAT", `${violation.field}: ${violation.description}`);
        });
        const sound = requests.filter((_, index) => broken[index] === undefined);
        return (principal, call) =>
          andThen(verifyAll(principal, sound, cacheModeOf(call)), (verdicts) => {
            const next = verdicts.values();
            const results = broken.map(
              (verdict) => verdict ?? next.next().value ?? invalid("INTERNAL", "the verification returned no result"),
            );
            logVerdicts(call.log, results);
            requireFit(results, (verdict) => verificationSize(verdict, issuer));
            return { results: results.map((verdict) => verificationOf(verdict, issuer)) };
          });
      },
    policy: "keyhold:verify",
    idempotency: "idempotent",
    mayAnswerFromCache: true,
    cost: ({ requests }) => costOfItems(requests.length),
  },
  // Waiting requests take the same part of the concurrency limit as in a batch; an eighth is exact in binary.
  streamVerify: { policy: "keyhold:verify", idempotency: "idempotent", mayAnswerFromCache: true, cost: () => 1 / 8 },
  getApiKey: getRow(null, apiKey),
  listApiKeys: listRow(null, (keys, now) => ({ apiKeys: keys.map((key) => apiKey(key, now)) })),
  explainApiKey: {
    implement:
      ({ explain, keys }) =>
      (request) => {
        const subject = readSubject(request);
        return async (principal, call) => {
          const explained = await explain(principal, subject, request);
          if (explained === null) throw keyNotFound({ keyId: request.keyId, kind: null });
          call.log.add(logFieldsOf(explained.verdict));
          return explanation(explained, keys.clock.now());
        };
      },
    policy: "keyhold:keys.read",
    idempotency: "idempotent",
  },
  revokeApiKey: {
    implement: (context) => (request) => {
      const { keys } = context;
      const name = nameOf(request);
      const description = request.revocationDescription ?? null;
      const revocation = { reason: revocationReason(request.reason), description };
      return async (principal, call) => {
        if (!request.includeDescendants)
          return revokedApiKey(await revokeKey(keys, principal, name, revocation), keys.clock.now());
        const control = controlOf(context, call);
        const { key, ...progress } = await revokeWithDescendants(keys, principal, name, revocation, control);
        return { ...revokedApiKey(key, keys.clock.now()), ...progress };
      };
    },
    policy: "keyhold:keys.revoke",
    keyPage: "REVOKE",
    idempotency: "none",
    isReserved: true,
    keyId: (_, { keyId }) => keyId,
  },
  disableApiKey: {
    implement:
      ({ keys }) =>
      ({ reason = null, ...request }) => {
        const name = nameOf(request);
        return async (principal) => apiKey(await disableKey(keys, principal, name, reason), keys.clock.now());
      },
    policy: "keyhold:keys.disable",
    idempotency: "idempotent",
    isReserved: true,
    keyId: (_, { keyId }) => keyId,
  },
  enableApiKey: {
    implement:
      ({ keys }) =>
      (request) => {
        const name = nameOf(request);
        return async (principal) => apiKey(await enableKey(keys, principal, name), keys.clock.now());
      },
    policy: "keyhold:keys.disable",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  adjustQuota: {
    implement:
      ({ keys }) =>
      (request) => {
        const adjustment = parseQuotaAdjustment(request);
        return async (principal) => apiKey(await adjustQuota(keys, principal, adjustment), keys.clock.now());
      },
    policy: "keyhold:keys.update",
    idempotency: "none",
    keyId: (_, { keyId }) => keyId,
  },
  bulkRevokeApiKeys,
  bulkDisableApiKeys,
};

/** The rules of the proto reject other values. */
function tokenAlgorithm(wire: WireTokenAlgorithm): TokenAlgorithm {
  return wire === WireTokenAlgorithm.MACAROON ? "MACAROON" : "JWT";
}

/** Returns the key of a request with its kind, which the collection in the path requires. */
function nameOf({ keyId, collection }: { readonly keyId: string; readonly collection: string }): KeyName {
  return { keyId: parseKeyId(keyId, "key_id"), kind: KINDS.get(collection) ?? null };
}

const KINDS: ReadonlyMap<string, KeyKind> = new Map([
  ["issuedApiKeys", "issued"],
  ["importedApiKeys", "imported"],
]);
