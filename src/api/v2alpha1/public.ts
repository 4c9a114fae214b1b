import type { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import type { SelfServiceService } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { checkOwnReason, selfRevoke } from "../../keys/revoke.ts";
import { jwksEtag } from "../../token/jwks.ts";
import type { ServiceRows } from "../row.ts";
import { revocationReason } from "./enums.ts";
import { revokedApiKey } from "./key-resources.ts";

/** Unauthenticated RPCs accept small, uncompressed bodies only. */
export const selfService: ServiceRows<typeof SelfServiceService> = {
  selfRevokeApiKey: {
    implement:
      ({ keys, verifyReserved }) =>
      (request) => {
        const reason = revocationReason(request.reason);
        checkOwnReason(reason);
        return async (principal) => {
          const verdict = await verifyReserved(principal, request.credential);
          const key = await selfRevoke(keys, principal, verdict, reason);
          return { ...revokedApiKey(key, keys.clock.now()), $typeName: undefined };
        };
      },
    policy: "public",
    idempotency: "none",
    isReserved: true,
    maxRequestBytes: 64 * 1024,
    acceptsCompression: false,
    keyId: (_, { keyId }) => keyId,
  },
};

/** Seconds for which a verifier may cache the key set. It should reload it at once for a new `kid`. */
const MAX_AGE = 300;

export const derivedKeys: ServiceRows<typeof DerivedKeysService> = {
  getJwks: {
    implement:
      ({ jwks }) =>
      () =>
      async (_principal, call) => {
        const document = await jwks();
        call.setHeader("cache-control", `public, max-age=${MAX_AGE}`);
        call.setHeader("etag", jwksEtag(document));
        return { keys: [...document.keys] };
      },
    policy: "public",
    idempotency: "no side effects",
    maxRequestBytes: 4 * 1024,
    acceptsCompression: false,
    mayAnswerFromCache: true,
  },
};
