import { checkAll, invalidArgument } from "../domain/errors.ts";
import { type KeyKind, parseKeyId } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { requireLimitName } from "../domain/rate-limit.ts";
import { type PagingContext, pageOf, parsePageRequest } from "../paging/page-request.ts";
import { OUTCOMES } from "./counter.ts";
import {
  alignPeriod,
  DAY,
  DIMENSIONS,
  type Dimension,
  HOUR,
  isOfUnits,
  STEPS,
  type UsageCount,
  type UsageQuery,
  type UsageReader,
} from "./query.ts";

export type UsageContext = PagingContext & { readonly reader: UsageReader };

/** A period as a request states it. */
export interface PeriodRequest {
  readonly startTime: Date | undefined;
  readonly endTime: Date | undefined;
  /** Empty: none. */
  readonly step: string;
}

export interface UsageRequest extends PeriodRequest {
  /** Empty: any. */
  readonly keyId: string;
  readonly actorId: string;
  readonly kind: KeyKind | undefined;
  readonly outcome: string;
  readonly limit: string;
  readonly groupBy: readonly string[];
  readonly pageSize: number;
  readonly pageToken: string;
}

/** A place in the counts of a query: the number of rows before it. */
interface UsagePosition {
  readonly offset: number;
}

const MAX_STEPS = 1_000;

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseUsageRequest(context: UsageContext, request: UsageRequest) {
  const { keyId, actorId, kind, outcome, limit, groupBy, pageSize, pageToken, startTime, endTime, step } = request;
  const filter = JSON.stringify([keyId, actorId, kind, outcome, limit, startTime, endTime, step]);
  const list = { pageSize, pageToken, filter, orderBy: groupBy.join() };
  // Later pages have the default period of the first one.
  const parseTime = (_: string, now: () => number) => parsePeriod(request, parseStep(step), now());
  const ofUnits = isOfUnits(request);
  const [page, parsedKeyId, dimensions] = checkAll(
    () => parsePageRequest<Period, null, UsagePosition>(context, "usage", list, parseTime, () => null),
    () => (keyId === "" ? undefined : parseKeyId(keyId, "key_id")),
    () => groupBy.map((text) => parseDimension(text, ofUnits)),
    () => checkOutcome(outcome, ofUnits),
    () => limit !== "" && requireLimitName(limit, "limit"),
  );
  const query: UsageQuery = {
    ...{ ...page.filter, groupBy: dimensions, kind, keyId: parsedKeyId },
    ...{ actorId: actorId || undefined, outcome: outcome || undefined, limit: limit || undefined },
  };
  return { query, page };
}

/** Returns one page of counts, and the token of the next one, empty if this is the last. */
export async function queryUsage(
  { reader, rings }: UsageContext,
  { restrictions }: Principal,
  { query, page }: ReturnType<typeof parseUsageRequest>,
) {
  const offset = page.after?.offset ?? 0;
  const found = await reader.query(query, { offset, limit: page.size + 1 }, restrictions);
  const { items, nextPageToken } = pageOf(
    page,
    found.map((count, index) => ({ ...count, offset: offset + index + 1 })),
    sizeOf,
    ({ offset }): UsagePosition => ({ offset }),
    rings.pageToken,
  );
  return { items, nextPageToken };
}

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseKeyUsageRequest({ clock }: UsageContext, request: PeriodRequest & { readonly keyId: string }) {
  const [keyId, period] = checkAll(
    () => parseKeyId(request.keyId, "key_id"),
    () => assertFewSteps(parsePeriod(request, parseStep(request.step) ?? HOUR, clock.now())),
  );
  return { ...period, keyId, groupBy: ["outcome"] } as const satisfies UsageQuery;
}

/** Returns the counts of one key, which must be visible to the caller. */
export function readKeyUsage(
  { reader }: UsageContext,
  { restrictions }: Principal,
  query: ReturnType<typeof parseKeyUsageRequest>,
): Promise<UsageCount[]> {
  return reader.query(query, { offset: 0, limit: MAX_STEPS * OUTCOMES.length }, restrictions);
}

function parseStep(text: string): number | null {
  if (text === "") return null;
  const step = STEPS.get(text);
  if (step === undefined)
    throw invalidArgument("step", `must be one of ${[...STEPS.keys()].join(", ")}`, "VALUE_NOT_ALLOWED");
  return step;
}

/** Only verifications that are admitted cost units. */
const NO_OUTCOME = "units of limits have no outcome; leave out outcome or limit";

function parseDimension(text: string, ofUnits: boolean): Dimension {
  if (ofUnits && text === "outcome") throw invalidArgument("group_by", NO_OUTCOME, "VALUE_NOT_ALLOWED");
  const dimension = DIMENSIONS.find((one) => one === text);
  if (dimension !== undefined) return dimension;
  throw invalidArgument("group_by", `must be any of ${DIMENSIONS.join(", ")}`, "VALUE_NOT_ALLOWED");
}

function checkOutcome(text: string, ofUnits: boolean): void {
  if (text === "") return;
  if (ofUnits) throw invalidArgument("outcome", NO_OUTCOME, "VALUE_NOT_ALLOWED");
  if (OUTCOMES.some((outcome) => outcome === text)) return;
  throw invalidArgument("outcome", `must be one of ${OUTCOMES.join(", ")}`, "VALUE_NOT_ALLOWED");
}

type Period = Pick<UsageQuery, "startTime" | "endTime" | "step">;

function assertFewSteps(period: Period): Period {
  const { startTime, endTime, step } = period;
  if (endTime.getTime() - startTime.getTime() <= MAX_STEPS * (step ?? HOUR)) return period;
  throw invalidArgument("start_time", `the period must have at most ${MAX_STEPS} steps`, "OUT_OF_RANGE");
}

/** Extends the period to whole steps, or hours without a step. */
function parsePeriod({ startTime, endTime }: PeriodRequest, step: number | null, now: number): Period {
  const length = step === DAY ? 30 * DAY : DAY;
  const end = endTime ?? new Date(now);
  const start = startTime ?? new Date(end.getTime() - length);
  if (start >= end)
    throw invalidArgument("start_time", "must be before end_time, which is now by default", "OUT_OF_RANGE");
  return { ...alignPeriod(start, end, step ?? HOUR), step };
}

/** Bytes of a count in a response, at most, without its texts. */
const COUNT_SIZE = 80;

function sizeOf({ actorId, limit }: UsageCount): number {
  return COUNT_SIZE + 3 * (actorId?.length ?? 0) + (limit?.length ?? 0);
}
