import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type KeyPageSessionSchema,
  type KeyPagesService,
  KeyPagePermission as WirePermission,
} from "../../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { KEY_PAGE_PERMISSIONS, type KeyPageGrant } from "../../domain/key-page.ts";
import { createKeyPageSession, parseKeyPageInput } from "../../keys/key-page.ts";
import type { ServiceRows } from "../row.ts";
import { keyPagePermission } from "./enums.ts";
import { timestamp } from "./key-resources.ts";

export const keyPages: ServiceRows<typeof KeyPagesService> = {
  createKeyPageSession: {
    implement:
      ({ keyPages }) =>
      ({ actorId, permissions, allowedScopes, maxTtl, returnUrl }) => {
        const granted = permissions.map((permission, index) => keyPagePermission(permission, `permissions[${index}]`));
        const grant = parseKeyPageInput({ actorId, permissions: granted, allowedScopes, maxTtl, returnUrl });
        return async (principal, call) => {
          const host = call.header("host") ?? call.header(":authority") ?? "";
          const { sessionId, url, expireTime } = await createKeyPageSession(keyPages, principal, grant, host);
          return { sessionId, url, urlExpireTime: timestamp(expireTime) };
        };
      },
    policy: "keyhold:key-pages",
    idempotency: "none",
  },
};

/** Returns what a session of the key page permits. `maxKeyTtl`: the limit of the server for every key, in milliseconds; null: none. */
export function keyPageSession(
  { actorId, permissions, allowedScopes, maxTtl, returnUrl }: KeyPageGrant,
  maxKeyTtl: number | null,
): MessageInitShape<typeof KeyPageSessionSchema> {
  const ttl = Math.min(maxTtl ?? Number.POSITIVE_INFINITY, maxKeyTtl ?? Number.POSITIVE_INFINITY);
  return {
    ...{ actorId, allowedScopes: [...allowedScopes] },
    permissions: KEY_PAGE_PERMISSIONS.filter((one) => permissions.includes(one)).map((one) => WirePermission[one]),
    ...(Number.isFinite(ttl) && { maxTtl: `${ttl / 1000}s` }),
    ...(returnUrl !== null && { returnUrl }),
  };
}
