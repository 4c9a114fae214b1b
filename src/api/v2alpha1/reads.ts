import type { ApiKey, KeyKind } from "../../domain/key.ts";
import type { Principal } from "../../domain/principal.ts";
import { getKey, listKeys, parseListRequest } from "../../keys/read.ts";
import { type PageRequest, pageSizeOf } from "../../paging/page-request.ts";
import { type ApiContext, costOfItems } from "../row.ts";

/** Returns the row of an RPC that returns a key of this kind, or of either kind if it is null. */
export function getRow<R>(kind: KeyKind | null, toResource: (key: ApiKey, now: number) => R) {
  return {
    implement:
      ({ keys }: ApiContext) =>
      ({ keyId }: { readonly keyId: string }) =>
      async (principal: Principal) =>
        toResource(await getKey(keys, principal, kind, keyId), keys.clock.now()),
    policy: "keyhold:keys.read",
    keyPage: "VIEW",
    idempotency: "no side effects",
    keyId: (_: unknown, { keyId }: { readonly keyId?: string | undefined }) => keyId,
  } as const;
}

/** Returns the row of an RPC that lists keys of this kind, or of both kinds if it is null. */
export function listRow<P extends object>(kind: KeyKind | null, toPage: (keys: readonly ApiKey[], now: number) => P) {
  return {
    implement:
      ({ keys }: ApiContext) =>
      (request: PageRequest) => {
        const page = parseListRequest(keys, kind, request);
        return async (principal: Principal) => {
          const { keys: found, nextPageToken } = await listKeys(keys, principal, page);
          return { ...toPage(found, keys.clock.now()), nextPageToken };
        };
      },
    policy: "keyhold:keys.read",
    keyPage: "VIEW",
    idempotency: "no side effects",
    cost: ({ pageSize }: PageRequest) => costOfItems(pageSizeOf(pageSize)),
  } as const;
}
