import { type CallersService, AuthMethod as WireAuthMethod } from "../../../gen/keyhold/v2alpha1/callers_pb.js";
import type { AuthMethod } from "../../domain/principal.ts";
import type { ServiceRows } from "../row.ts";
import { keyPageSession } from "./key-pages.ts";
import { timestamp } from "./key-resources.ts";

export const callers: ServiceRows<typeof CallersService> = {
  whoAmI: {
    implement:
      ({ permittedRpcs, keys: { lifetimes } }) =>
      () =>
      (principal) => {
        const { subject, method, scopes, restrictions, expireTime } = principal;
        const { keyPage } = restrictions;
        return {
          ...{ subject, authMethod: AUTH_METHOD[method], scopes: [...scopes] },
          actorRestricted: restrictions.actorIds !== null,
          restrictedToActorIds: [...(restrictions.actorIds ?? [])],
          expireTime: timestamp(expireTime ?? null),
          permittedRpcs: [...permittedRpcs(principal)],
          ...(keyPage !== undefined && { keyPageSession: keyPageSession(keyPage, lifetimes.maxKeyTtl) }),
        };
      },
    policy: "authenticated",
    keyPage: "VIEW",
    idempotency: "no side effects",
  },
};

/** The guard of RPCs admits no caller with another method. */
const AUTH_METHOD: Readonly<Record<AuthMethod, WireAuthMethod>> = {
  none: WireAuthMethod.NONE,
  "admin-token": WireAuthMethod.ADMIN_TOKEN,
  oidc: WireAuthMethod.OIDC,
  "key-page": WireAuthMethod.KEY_PAGE,
  secret: WireAuthMethod.UNSPECIFIED,
  network: WireAuthMethod.UNSPECIFIED,
  mtls: WireAuthMethod.UNSPECIFIED,
  local: WireAuthMethod.UNSPECIFIED,
};
