import { fieldError, invalidArgument, KeyholdError } from "../domain/errors.ts";
import { newId } from "../domain/key.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import { hmacSha256, type ServerKey } from "../domain/server-keys.ts";
import { equalBytes } from "../lib/bytes.ts";
import { type KeyFilter, parseKeyFilter } from "./filter.ts";
import type { BulkChange, BulkOperation, BulkSelection, BulkStore, KeysContext } from "./ports.ts";
import { SLICES_PER_SEARCH, startWork, type WorkControl } from "./time-box.ts";

export interface BulkRequest {
  /** AIP-160, not empty. */
  readonly filter: string;
  readonly change: BulkChange;
  /** Count only. */
  readonly validateOnly: boolean;
  /** Nothing is changed if another number of keys matches when the operation begins. */
  readonly expectedCount?: number;
  /** Identifies the operation; a new one without. */
  readonly requestId?: string;
}

/** The request id is empty if nothing was begun. */
type BulkProgress = Pick<BulkOperation, "requestId" | "matchedCount" | "changedCount" | "done">;

/** Throws `INVALID_ARGUMENT` for an empty filter: it would select every key, and may be a variable that was not set. */
export function requireFilter(text: string, now: number): KeyFilter {
  const filter = parseKeyFilter(text, null, () => now);
  if (filter.node !== "all") return filter;
  throw invalidArgument(
    "filter",
    "is required; to select every key deliberately, use create_time < now()",
    "FIELD_REQUIRED",
  );
}

/**
 * Changes every key that matches a filter, for some seconds: until all are changed, or `mayContinue` returns false. The operation is stored,
 * so that calls with its request id continue it on any node, also after a crash; no key is changed twice.
 *
 * @throws `EXPECTED_COUNT_DIFFERS`, `REQUEST_ID_REUSED`, `CHANGE_UNCONFIRMED`
 */
export async function changeMany(
  context: KeysContext,
  principal: Principal,
  request: BulkRequest,
  control: WorkControl,
): Promise<BulkProgress> {
  const work = startWork(control);
  const { bulk, clock } = context;
  const select = (now: Date): BulkSelection => {
    const filter = requireFilter(request.filter, now.getTime());
    return { filter, filterTime: now, change: request.change, principal };
  };
  if (request.validateOnly) {
    const { matchedCount } = await count(bulk, select(new Date(clock.now())), request);
    return { matchedCount, changedCount: 0, done: false, requestId: "" };
  }
  let [operation, caughtUp] = await resume(context, principal, select, request);
  const selection = select(operation.startTime);
  let [found, isAll] = [[] as string[], true];
  await work(async (slice) => {
    if (found.length === 0 && !operation.done) {
      const limit = slice * SLICES_PER_SEARCH;
      found = await bulk.select(operation, selection, limit);
      isAll = found.length < limit;
    }
    const keyIds = found.splice(0, slice);
    const many = { ...selection, keyIds, requiresCaller: true, now: new Date(clock.now()) };
    const step = await bulk.advance(operation, many, isAll && found.length === 0);
    control.onChanged(step.changed);
    const isShared = step.operation.changedCount !== operation.changedCount + step.changed.length;
    if (isShared) caughtUp = catchUp(bulk);
    // Another call has advanced it, beyond these keys or not as far.
    if (step.operation.afterKeyId !== (keyIds.at(-1) ?? operation.afterKeyId)) found = [];
    operation = step.operation;
    return operation.done;
  });
  await caughtUp;
  const { requestId, matchedCount, changedCount, done } = operation;
  return { requestId, matchedCount, changedCount, done };
}

/**
 * Returns the operation of a request, which begins now if it does not exist; and a promise that resolves when this node has received the
 * changes that it has made before.
 */
async function resume(
  context: KeysContext,
  principal: Principal,
  select: (startTime: Date) => BulkSelection,
  request: BulkRequest,
): Promise<readonly [BulkOperation, Promise<void>]> {
  const { bulk } = context;
  const requestId = request.requestId ?? newId(context.clock.now(), context.random);
  const existing = request.requestId === undefined ? null : await bulk.find(requestId);
  const operation =
    existing ?? (await begin(context, select(new Date(context.clock.now())), { ...request, requestId }));
  const { all } = context.rings.fingerprint;
  if (!all.some((key) => equalBytes(fingerprintOf(request, principal, key), operation.fingerprint)))
    throw fieldError("REQUEST_ID_REUSED", "request_id", "was already used for an operation with different parameters");
  return [operation, operation.changedCount === 0 ? Promise.resolve() : catchUp(bulk)];
}

async function begin(
  { bulk, rings }: KeysContext,
  selection: BulkSelection,
  request: BulkRequest & { readonly requestId: string },
): Promise<BulkOperation> {
  const { principal, filterTime: startTime, change } = selection;
  const fingerprint = fingerprintOf(request, principal, rings.fingerprint.current);
  const { requestId } = request;
  const identity = { requestId, verb: change.verb, fingerprint, caller: callerName(principal), startTime };
  return bulk.begin({ ...identity, ...(await count(bulk, selection, request)) });
}

/** @throws `EXPECTED_COUNT_DIFFERS` */
async function count(bulk: BulkStore, selection: BulkSelection, { expectedCount }: BulkRequest) {
  const counted = await bulk.count(selection);
  const { matchedCount } = counted;
  if (expectedCount === undefined || matchedCount === expectedCount) return counted;
  const message = `matching keys: ${matchedCount}, expected: ${expectedCount}; nothing was changed`;
  const metadata = { matched_count: String(matchedCount), expected_count: String(expectedCount) };
  throw new KeyholdError("EXPECTED_COUNT_DIFFERS", message, { metadata });
}

/**
 * Resolves when this node has received the changes that other calls have made. A call does not wait for it before its end, so it must not
 * be unhandled until then.
 */
function catchUp(bulk: BulkStore): Promise<void> {
  const caughtUp = bulk.caughtUp();
  caughtUp.catch(() => undefined);
  return caughtUp;
}

/** Returns a keyed hash of the request and its caller, whose rights decide which keys match. */
function fingerprintOf({ filter, change }: BulkRequest, principal: Principal, key: ServerKey): Uint8Array {
  const caller = [callerName(principal), principal.restrictions.actorIds];
  // Releases up to 0.3 know the reason by its name in the API, and may have begun the operation.
  const details =
    change.verb === "revoke" ? [`REVOCATION_REASON_${change.reason}`, change.description] : [change.reason];
  return hmacSha256(key, JSON.stringify([change.verb, filter, details, caller]));
}
