import { digestCurrent, digestOthers } from "../credential/digest.ts";
import { rawKeyHint } from "../credential/hint.ts";
import { attempt, checkAll, fieldError, invalidArgument, KeyholdError } from "../domain/errors.ts";
import { type ApiKey, newId } from "../domain/key.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import { encodeBase64url } from "../lib/bytes.ts";
import { mapInSlices } from "../lib/time-slices.ts";
import type { KeysContext } from "./context.ts";
import { requireShorterLife } from "./giver.ts";
import { checkNewKey, identify, type NewKeyInput, newStoredKey, type ParsedFields, requireRepeat } from "./new-key.ts";
import { requireActor, requireHandled } from "./reserved-scopes.ts";
import type { Insertion, NewKey } from "./store.ts";

export interface NewImportInput extends NewKeyInput {
  /** The key as its holders present it: 1 to 4096 bytes of UTF-8. */
  readonly rawKey: string;
}

/** Imports one key. Throws on invalid input, and `RAW_KEY_ALREADY_EXISTS` if the raw key exists. */
export async function importKey(context: KeysContext, principal: Principal, draft: NewImportInput): Promise<ApiKey> {
  const parsed = checkNewImport(context, draft);
  const [result] = await importKeys(context, principal, [{ draft, parsed }]);
  if (result === undefined) throw new KeyholdError("INTERNAL", "an import had no result");
  if (result instanceof KeyholdError) throw result;
  return result;
}

/** An input that `checkNewImport` has accepted. */
export interface CheckedImport {
  readonly draft: NewImportInput;
  /** As `checkNewImport` returned them. */
  readonly parsed: ParsedFields;
}

/** Imports keys independently and returns one result per input, in order. Of inputs with the same raw key the first wins. */
export async function importKeys(
  context: KeysContext,
  principal: Principal,
  checked: readonly CheckedImport[],
): Promise<(ApiKey | KeyholdError)[]> {
  const results = await mapInSlices(checked, (one) => attempt(() => prepare(context, principal, one)));
  const winners = firstOfEach(results);
  const insertions = await context.store.insert(winners);
  const stored = new Map(winners.map((key, place) => [key, insertions[place]]));
  return results.map((result, index) => {
    if (result instanceof KeyholdError) return result;
    return attempt(() => conclude(context, principal, checked[index]?.draft, stored.get(result)));
  });
}

/** Like `checkNewKey`. Throws `INVALID_ARGUMENT` with every invalid field. */
export function checkNewImport(context: KeysContext, draft: NewImportInput): ParsedFields {
  const [, parsed] = checkAll(
    () => {
      if (!context.looksLikeOurs(draft.rawKey)) return;
      throw invalidArgument(
        "raw_key",
        "has the form of a secret or a token that Keyhold makes itself",
        "VALUE_NOT_ALLOWED",
      );
    },
    () => checkNewKey(context, draft),
  );
  return parsed;
}

function prepare(context: KeysContext, principal: Principal, { draft, parsed }: CheckedImport): NewKey {
  const { rawKey } = draft;
  requireActor(draft.actorId, principal);
  const now = context.clock.now();
  const keyId = newId(now, context.random);
  const createdBy = callerName(principal);
  const key = newStoredKey({ kind: "imported", keyId, hint: rawKeyHint(rawKey), parsed, now, createdBy }, draft);
  requireHandled(key, principal);
  requireShorterLife(key, principal);
  const { digest: digestKeys, fingerprint } = context.rings;
  const digest = digestCurrent(rawKey, digestKeys);
  const otherDigests = digestOthers(rawKey, digestKeys);
  return { key, digest, otherDigests, request: identify(draft, rawKey, fingerprint), principal };
}

/** Returns the keys to insert: the first with each raw key, and repeats of its request. */
function firstOfEach(results: readonly (NewKey | KeyholdError)[]): NewKey[] {
  const first = new Map<string, NewKey>();
  return results.filter((result): result is NewKey => {
    if (result instanceof KeyholdError) return false;
    const digest = encodeBase64url(result.digest.digest);
    const earlier = first.get(digest);
    if (earlier === undefined) first.set(digest, result);
    return earlier === undefined || isRepeat(result, earlier);
  });
}

function isRepeat(a: NewKey, b: NewKey): boolean {
  return a.request !== null && a.request.requestId === b.request?.requestId;
}

function conclude(
  context: KeysContext,
  principal: Principal,
  draft: NewImportInput | undefined,
  insertion: Insertion | undefined,
): ApiKey {
  if (draft !== undefined && insertion?.outcome === "inserted") return insertion.key;
  if (draft !== undefined && insertion?.outcome === "repeated") {
    requireRepeat(draft, draft.rawKey, insertion.fingerprint, context.rings.fingerprint);
    requireHandled(insertion.key, principal);
    requireShorterLife(insertion.key, principal);
    return insertion.key;
  }
  throw fieldError("RAW_KEY_ALREADY_EXISTS", "raw_key", "is imported already");
}
