import type { Principal } from "../domain/principal.ts";
import { networkOf } from "../lib/network.ts";
import { callRecord } from "./call-record.ts";
import type { CallRecord } from "./event.ts";

/** A denied call, and the number of calls like it. */
export interface Denied {
  readonly call: CallRecord;
  /** The key of a rejected credential. */
  readonly keyId: string | null;
  readonly reason: string;
  readonly count: number;
}

interface Entry extends Denied {
  count: number;
  /** When its calls are next recorded, in milliseconds. */
  nextTime: number;
}

/** Milliseconds for which calls like a recorded one are counted. */
const INTERVAL = 60_000;

/** Maximum number of events in an interval. */
const MAX_ENTRIES = 100;

/**
 * Denied calls that are not recorded yet. The first call of its kind is recorded at the next `take`; later ones with the same reason, RPC, caller,
 * network and key are counted, and recorded once a minute. So a flood of them costs little, in memory and in the log.
 */
export class Denials {
  readonly #entries = new Map<string, Entry>();
  /** Calls that are in no event, because there were too many kinds. */
  dropped = 0;

  add(principal: Principal, reason: string, keyId: string | null = null): void {
    const { rpc, method, subject, clientAddress } = principal;
    const kind = JSON.stringify([reason, rpc, method, subject, networkOf(clientAddress), keyId]);
    const entry = this.#entries.get(kind);
    if (entry !== undefined) entry.count++;
    else if (this.#entries.size >= MAX_ENTRIES) this.dropped++;
    else this.#entries.set(kind, { call: callRecord(principal), keyId, reason, count: 1, nextTime: 0 });
  }

  /** Returns what is to be recorded at `now`, in milliseconds. */
  take(now: number): Denied[] {
    const due = [...this.#entries].filter(([, { nextTime }]) => nextTime <= now);
    return due.flatMap(([kind, entry]) => {
      const { nextTime: _, ...denied } = entry;
      if (entry.count === 0) this.#entries.delete(kind);
      [entry.count, entry.nextTime] = [0, now + INTERVAL];
      return denied.count === 0 ? [] : [denied];
    });
  }
}
