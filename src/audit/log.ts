import { KeyholdError } from "../domain/errors.ts";
import { type Order, parseOrderBy } from "../paging/order.ts";
import { type PageRequest, type PagingContext, pageOf, parsePageRequest } from "../paging/page-request.ts";
import type { Denied } from "./denials.ts";
import type { AuditEvent } from "./event.ts";
import type { ExceededLimit } from "./exceeded-limits.ts";
import { type EventFilter, parseEventFilter } from "./filter.ts";

export type EventOrder = Order<"time" | "seq">;

/** A place in a list: that of an event. */
export interface EventPosition {
  readonly seq: number;
}

export interface EventQuery {
  readonly filter: EventFilter;
  readonly order: EventOrder;
  /** The last event of the previous page; null for the first page. */
  readonly after: EventPosition | null;
  readonly limit: number;
}

/** The number of events that were ever recorded, and the first that is stored. */
export interface LogBounds {
  readonly first: number;
  readonly size: number;
}

/** What one run of the sequencer has done. */
export interface Sequenced {
  readonly assigned: number;
  /** Milliseconds for which the oldest of these events has waited; 0 if there was none. */
  readonly lag: number;
}

/** The audit log in the database. */
export interface AuditStore {
  /** Assigns `seq` to all events that are committed. */
  sequence(): Promise<Sequenced>;
  bounds(): Promise<LogBounds>;
  /** Records denied calls. */
  deny(denied: readonly Denied[]): Promise<void>;
  /** Records limits that were exceeded, each once in its period on all nodes (migration 0039). */
  recordExceeded(exceeded: readonly ExceededLimit[]): Promise<void>;
  /** Rejects with `LIST_TOO_SLOW` if the database finds the events that match the filter too slowly. */
  list(query: EventQuery): Promise<AuditEvent[]>;
  /** Returns the events from `seq` on, in their order, at most `limit`. */
  read(seq: number, limit: number): Promise<AuditEvent[]>;
}

export type AuditContext = PagingContext & { readonly store: AuditStore };

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseEventPage(context: PagingContext, request: PageRequest) {
  return parsePageRequest<EventFilter, EventOrder, EventPosition>(
    context,
    "auditEvents",
    request,
    parseEventFilter,
    parseOrder,
  );
}

/** Returns one page of the log, and the token of the next one, empty if this is the last. The first page has every change that is committed. */
export async function listEvents(
  { store, rings }: AuditContext,
  page: ReturnType<typeof parseEventPage>,
  sizeOf: (event: AuditEvent) => number,
) {
  const { filter, order, after, size } = page;
  if (after === null) await store.sequence();
  const found = await store.list({ filter, order, after, limit: size + 1 });
  return pageOf(page, found, sizeOf, ({ seq }): EventPosition => ({ seq }), rings.pageToken);
}

/** @throws `AUDIT_EVENT_NOT_FOUND` */
export async function getEvent({ store }: AuditContext, seq: number): Promise<AuditEvent> {
  const [event] = Number.isSafeInteger(seq) ? await store.read(seq, 1) : [];
  if (event?.seq !== seq) throw new KeyholdError("AUDIT_EVENT_NOT_FOUND", `the audit log has no event ${seq}`);
  return event;
}

function parseOrder(text: string): EventOrder {
  return parseOrderBy(text, ["time", "seq"], { field: "time", isDescending: true });
}
