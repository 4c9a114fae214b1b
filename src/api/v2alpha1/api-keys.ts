import {
  type ApiKeysService,
  VerifyApiKeyRequestSchema,
  TokenAlgorithm as WireTokenAlgorithm,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { type KeyKind, parseKeyId } from "../../domain/key.ts";
import { requireFit } from "../../domain/response-size.ts";
import { invalid } from "../../domain/verdict.ts";
import { checkDerivation, deriveToken, type TokenAlgorithm } from "../../keys/derive.ts";
import { revokeWithDescendants } from "../../keys/descendants.ts";
import { disableKey, enableKey } from "../../keys/disable.ts";
import type { KeyName } from "../../keys/ports.ts";
import { getKey, listKeys, pageSizeOf, readPageRequest } from "../../keys/read.ts";
import { keyNotFound } from "../../keys/rejection.ts";
import { revokeKey } from "../../keys/revoke.ts";
import { andThen } from "../../lib/maybe-promise.ts";
import { factsOf } from "../log-fields.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { violationsOf } from "../validation.ts";
import { bulkDisableApiKeys, bulkRevokeApiKeys, controlOf } from "./bulk-changes.ts";
import { revocationReason } from "./enums.ts";
import { explanation, readSubject } from "./explanation.ts";
import { apiKey, revokedApiKey, timestamp } from "./key-resources.ts";
import { cacheModeOf, verificationBy } from "./verification.ts";

/** A credential that is exchanged for a token has any audience, and comes from no address. */
const FOR_DERIVATION = { requiredScopes: [], audience: null };

/** RPCs that verify a credential log the verdict with the key themselves. */
export const apiKeys: ServiceRows<typeof ApiKeysService> = {
  deriveToken: {
    implement:
      ({ derive, verifyStrictly }) =>
      ({ credential, algorithm: wire, ttl, scopes, audience, customClaims }, principal, call) => {
        const algorithm = ALGORITHMS.get(wire);
        if (algorithm === undefined)
          throw invalidArgument("algorithm", "is not one that Keyhold knows", "UNKNOWN_ENUM_VALUE");
        const derivation = { algorithm, ttl, scopes, audience, claims: customClaims ?? {} };
        return andThen(verifyStrictly(principal, credential, FOR_DERIVATION), (parent) => {
          call.log.add(factsOf(parent));
          return andThen(
            deriveToken(derive, principal, parent, derivation),
            ({ expireTime, scopes, audience, ...token }) => ({
              token: { ...token, scopes: [...scopes], audience: [...audience], expireTime: timestamp(expireTime) },
            }),
          );
        });
      },
    check: ({ ttl, customClaims }, { derive }) => checkDerivation({ ttl, claims: customClaims ?? {} }, derive.limits),
    policy: "keyhold:derive",
    idempotency: "none",
    mayAnswerFromCache: true,
  },
  verifyApiKey: {
    implement: ({ verify, issuer }) => {
      const verification = verificationBy(issuer);
      return (request, principal, call) =>
        andThen(verify(principal, request.credential, cacheModeOf(call), request), (verdict) => {
          call.log.add(factsOf(verdict));
          return verification(verdict).response;
        });
    },
    policy: "keyhold:verify",
    idempotency: "idempotent",
    mayAnswerFromCache: true,
  },
  // A credential that violates a rule of the request gets that as its verdict and does not affect the others.
  batchVerifyApiKeys: {
    implement: ({ verifyAll, issuer }) => {
      const verification = verificationBy(issuer);
      return ({ requests }, principal, call) => {
        const broken = requests.map((request) => {
          const [violation] = violationsOf(VerifyApiKeyRequestSchema, request);
          return violation && invalid("INVALID_FORMAT", `${violation.field}: ${violation.description}`);
        });
        const sound = requests.filter((_, index) => broken[index] === undefined);
        return andThen(verifyAll(principal, sound, cacheModeOf(call)), (verdicts) => {
          const next = verdicts.values();
          const results = broken.map((verdict) => verdict ?? next.next().value ?? invalid("INTERNAL", "no verdict"));
          const described = results.map(verification);
          requireFit(described, ({ bytes }) => bytes);
          return { results: described.map(({ response }) => response) };
        });
      };
    },
    policy: "keyhold:verify",
    idempotency: "idempotent",
    mayAnswerFromCache: true,
    cost: ({ requests }) => costOfItems(requests.length),
  },
  getApiKey: {
    implement:
      ({ keys }) =>
      async ({ keyId }, principal) =>
        apiKey(await getKey(keys, principal, null, keyId), keys.clock.now()),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    keyId: (_, { keyId }) => keyId,
  },
  listApiKeys: {
    implement:
      ({ keys }) =>
      async (request, principal) => {
        const page = await listKeys(keys, principal, null, request);
        const now = keys.clock.now();
        return { apiKeys: page.keys.map((key) => apiKey(key, now)), nextPageToken: page.nextPageToken };
      },
    check: (request, { keys }) => readPageRequest(keys, null, request),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  explainApiKey: {
    implement:
      ({ explain, keys }) =>
      async (request, principal, call) => {
        const subject = readSubject(request);
        const found = await explain(principal, subject, request);
        if (found === null) throw keyNotFound({ keyId: request.keyId, kind: null });
        call.log.add(factsOf(found.verdict));
        return explanation(found, keys.clock.now());
      },
    check: readSubject,
    policy: "keyhold:keys.read",
    idempotency: "idempotent",
  },
  revokeApiKey: {
    implement: (context) => async (request, principal, call) => {
      const { keys } = context;
      const description = request.revocationDescription ?? null;
      const revocation = { reason: revocationReason(request.reason), description };
      const name = nameOf(request);
      if (!request.includeDescendants)
        return revokedApiKey(await revokeKey(keys, principal, name, revocation), keys.clock.now());
      const control = controlOf(context, call);
      const { key, ...progress } = await revokeWithDescendants(keys, principal, name, revocation, control);
      return { ...revokedApiKey(key, keys.clock.now()), ...progress };
    },
    check: ({ keyId }) => parseKeyId(keyId, "key_id"),
    policy: "keyhold:keys.revoke",
    idempotency: "none",
    isReserved: true,
    keyId: (_, { keyId }) => keyId,
  },
  disableApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) =>
        apiKey(await disableKey(keys, principal, nameOf(request), request.reason ?? null), keys.clock.now()),
    check: ({ keyId }) => parseKeyId(keyId, "key_id"),
    policy: "keyhold:keys.disable",
    idempotency: "idempotent",
    isReserved: true,
    keyId: (_, { keyId }) => keyId,
  },
  enableApiKey: {
    implement:
      ({ keys }) =>
      async (request, principal) =>
        apiKey(await enableKey(keys, principal, nameOf(request)), keys.clock.now()),
    check: ({ keyId }) => parseKeyId(keyId, "key_id"),
    policy: "keyhold:keys.disable",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  bulkRevokeApiKeys,
  bulkDisableApiKeys,
};

const ALGORITHMS: ReadonlyMap<WireTokenAlgorithm, TokenAlgorithm> = new Map([
  [WireTokenAlgorithm.JWT, "JWT"],
  [WireTokenAlgorithm.MACAROON, "MACAROON"],
]);

/** Returns the key of a request with its kind, which the collection in the path requires. */
function nameOf({ keyId, collection }: { readonly keyId: string; readonly collection: string }): KeyName {
  return { keyId: parseKeyId(keyId, "key_id"), kind: KINDS.get(collection) ?? null };
}

/** Kinds of keys by the collection in the path. */
const KINDS: ReadonlyMap<string, KeyKind> = new Map([
  ["issuedApiKeys", "issued"],
  ["importedApiKeys", "imported"],
]);
