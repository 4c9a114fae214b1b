import type { LeaseRow } from "./change-feed.ts";
import { WAITED_PART } from "./lease.ts";

interface Seen {
  readonly lease: LeaseRow;
  /** When it was first seen with this number of renewals, in milliseconds. */
  readonly since: number;
}

/**
 * The leases of the other nodes as one session has seen them. One that was seen with the same number of renewals for as long as it
 * lasts is over: its node asked for the last renewal before we first saw it. No clock but our own is asked, and of that only how
 * long something took.
 */
export class PeerLeases {
  #seen = new Map<string, Seen>();

  /** What was read; `now` is a time after the answer came. */
  observe(leases: readonly LeaseRow[], now: number): void {
    const before = this.#seen;
    this.#seen = new Map(
      leases.map((lease) => {
        const known = before.get(lease.leaseId);
        return [lease.leaseId, known?.lease.renewals === lease.renewals ? known : { lease, since: now }];
      }),
    );
  }

  overdue(now: number): LeaseRow[] {
    return [...this.#seen.values()].filter((seen) => endOf(seen) <= now).map(({ lease }) => lease);
  }

  /** When the next of these leases is overdue; undefined if none of them is known. */
  nextEnd(leaseIds: Iterable<string>): number | undefined {
    const ends = [...leaseIds].flatMap((leaseId) => {
      const seen = this.#seen.get(leaseId);
      return seen === undefined ? [] : [endOf(seen)];
    });
    return ends.length === 0 ? undefined : Math.min(...ends);
  }
}

function endOf({ lease, since }: Seen): number {
  return since + lease.ttl * WAITED_PART;
}
