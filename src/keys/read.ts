import { type ApiKey, type KeyKind, parseKeyId } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { responseSize } from "../domain/response-size.ts";
import { isVisible } from "../domain/visibility.ts";
import { type PageRequest, type PagingContext, pageOf, parsePageRequest } from "../paging/page-request.ts";
import { type KeyFilter, parseKeyFilter } from "./filter.ts";
import { type ListOrder, type ListPosition, parseOrder } from "./list-order.ts";
import type { KeysContext, ListedKey } from "./ports.ts";
import { keyNotFound } from "./rejection.ts";

/** Returns a key of this kind, or of either kind if it is null. */
export async function getKey(
  { store }: KeysContext,
  { restrictions }: Principal,
  kind: KeyKind | null,
  keyId: string,
): Promise<ApiKey> {
  const name = { keyId: parseKeyId(keyId, "key_id"), kind };
  const stored = await store.get(name);
  if (stored === null || !isVisible(stored.key, restrictions)) throw keyNotFound(name);
  return stored.key;
}

/** Throws `INVALID_ARGUMENT` with every invalid field. `kind` is null for a list of both kinds. */
export function parseListRequest(context: PagingContext, kind: KeyKind | null, request: PageRequest) {
  const parseFilter = (text: string, now: () => number) => parseKeyFilter(text, kind, now);
  const list = kind ?? "all";
  return {
    kind,
    ...parsePageRequest<KeyFilter, ListOrder, ListPosition>(context, list, request, parseFilter, parseOrder),
  };
}

/** Returns one page of the keys that the caller may see, and the token of the next one, empty if this is the last. */
export async function listKeys(
  { store, clock, rings }: PagingContext & { readonly store: Pick<KeysContext["store"], "list"> },
  { restrictions: { actorIds } }: Pick<Principal, "restrictions">,
  { kind, filter, order, after, ...page }: ReturnType<typeof parseListRequest>,
) {
  const query = { actorIds, kind, filter, order, after, limit: page.size + 1 };
  const found = await store.list(query, new Date(clock.now()));
  const { items, nextPageToken } = pageOf(page, found, responseSize, positionOf, rings.pageToken);
  return { keys: items, nextPageToken };
}

function positionOf({ keyId, orderValue }: ListedKey): ListPosition {
  return { keyId, value: orderValue };
}
