import type { LogPosition, SessionPosition } from "./change-feed.ts";
import { type DatabasePosition, historyOf, type ServerId, systemIdentifierOf, timelineOf } from "./server-id.ts";

/** A log entry about a database that was accepted. */
export interface HistoryNote {
  readonly level: "info" | "warn";
  readonly message: string;
}

interface RejectedDatabase {
  /** History of the database (`server-id.ts`). */
  readonly history: string;
  readonly loss: string;
  /** When it had last been accepted at that time, Unix time in milliseconds; null if never. */
  readonly acceptTime: number | null;
}

/** Number of positions kept, to report since when changes may be lost: one per second for five minutes. */
const MAX_POSITIONS = 300;

/**
 * What this process knows of the history of its database: the last known positions of its write-ahead log. A database that lacks some of
 * it may have lost acknowledged revocations and would accept revoked keys.
 */
export class DatabaseHistory {
  #server: ServerId | null = null;
  /** Time of the last known position, by the database's clock. */
  #time = Number.NEGATIVE_INFINITY;
  /** Positions of one history, oldest first; both fields increase. */
  #positions: { readonly lsn: bigint; readonly time: number }[] = [];
  /** Position of its audit log. Only changes move it: the write-ahead log of a restored database soon ends beyond any known position. */
  #log: LogPosition | null = null;
  #rejected: RejectedDatabase | null = null;

  /** Records a position of the database. */
  note({ server, lsn, time }: DatabasePosition): void {
    if (this.#server === null || historyOf(this.#server) !== historyOf(server)) this.#forget();
    this.#server = server;
    this.#time = Math.max(this.#time, time);
    if (lsn === null || lsn <= (this.#positions.at(-1)?.lsn ?? -1n)) return;
    this.#positions.push({ lsn, time });
    if (this.#positions.length > MAX_POSITIONS) this.#positions.shift();
  }

  /** Records what a session with the database received of its audit log. */
  noteLog(position: LogPosition | null): void {
    this.#log = position ?? this.#log;
  }

  /**
   * Compares the database of a new session with the last known position. Returns a log entry, or null.
   *
   * @throws DatabaseRejectedError when it lacks changes that were durable and no operator has accepted it since.
   */
  check(found: SessionPosition): HistoryNote | null {
    if (this.#server === null) return null;
    // A rejected database stays rejected: its log may grow beyond the known position.
    const isKnown = this.#rejected?.history === historyOf(found.server);
    const loss = isKnown ? (this.#rejected?.loss ?? null) : this.#lossOf(found, this.#server);
    if (loss === null) return this.#timelineNote(found, this.#server);
    if (!this.#isAccepted(found, isKnown)) {
      if (!isKnown) this.#rejected = { history: historyOf(found.server), loss, acceptTime: found.acceptTime };
      throw new DatabaseRejectedError(loss);
    }
    this.#rejected = null;
    this.#forget();
    this.#time = found.time;
    return { level: "warn", message: `an operator accepted the database, although ${loss}` };
  }

  #forget(): void {
    this.#positions = [];
    this.#log = null;
  }

  /**
   * Whether it was accepted after its last known position or after it was rejected: its clock may be behind that of the previous server.
   */
  #isAccepted({ acceptTime }: SessionPosition, wasRejected: boolean): boolean {
    if (acceptTime === null) return false;
    return acceptTime > this.#time || (wasRejected && acceptTime !== this.#rejected?.acceptTime);
  }

  /** Returns a description of what the database lacks; null if nothing is known to be missing. */
  #lossOf({ server, lsn, promotedAt, log }: SessionPosition, known: ServerId): string | null {
    if (systemIdentifierOf(server) !== systemIdentifierOf(known))
      return `it is a different database: its system identifier is ${systemIdentifierOf(server)}, but was ${systemIdentifierOf(known)}`;
    const [timeline, before] = [timelineOf(server), timelineOf(known)];
    if (timeline < before) return `it is on timeline ${timeline}, but was on ${before}: a backup was restored`;
    const last = this.#positions.at(-1)?.lsn ?? 0n;
    const end = timeline === before ? lsn : promotedAt;
    if (end === null || end >= last) return timeline === before ? this.#lossOfLog(log) : null;
    const what = timeline === before ? "a backup was restored" : `a promoted standby started timeline ${timeline}`;
    const kept = this.#positions.findLast((one) => one.lsn <= end);
    const since = kept === undefined ? "" : `, so changes since ${new Date(kept.time).toISOString()} may be lost`;
    return `${what}: its WAL ends at ${lsnText(end)}, ${last - end} bytes before the durable LSN ${lsnText(last)}${since}`;
  }

  /** A standby that was promoted may lack events whose changes were never acknowledged. A restarted server lacks none. */
  #lossOfLog(found: LogPosition | null): string | null {
    if (found === null || this.#log === null || found.size > this.#log.size) return null;
    if (found.size === this.#log.size && found.salt === this.#log.salt) return null;
    return `a backup was restored: its audit log lacks event ${this.#log.size - 1}`;
  }

  #timelineNote({ server, promotedAt }: SessionPosition, known: ServerId): HistoryNote | null {
    if (timelineOf(server) === timelineOf(known)) return null;
    const what = `a standby was promoted: the database is on timeline ${timelineOf(server)}, but was on ${timelineOf(known)}`;
    if (promotedAt !== null) return { level: "info", message: `${what}; all changes known to be durable are present` };
    return { level: "warn", message: `${what}; it has restarted since, so the missing changes are unknown` };
  }
}

/** The database has lost acknowledged changes. An operator has to accept it. */
export class DatabaseRejectedError extends Error {
  constructor(loss: string) {
    super(
      `the database is rejected: ${loss}. Start a server that clients cannot reach, repeat the lost revocations on it, then run \`keyhold cluster accept-database\``,
    );
  }
}

/** Formats a position like PostgreSQL (PostgreSQL docs, 8.20 pg_lsn). */
function lsnText(lsn: bigint): string {
  return `${(lsn >> 32n).toString(16)}/${(lsn & 0xffffffffn).toString(16)}`.toUpperCase();
}
