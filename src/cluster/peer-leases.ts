import type { LeaseRow } from "./change-feed.ts";
import { WAITED_PART } from "./lease.ts";

interface Seen {
  readonly lease: LeaseRow;
  /** When this number of renewals was first observed, in milliseconds. */
  readonly since: number;
}

/**
 * The leases of the other nodes as observed by one session. A lease whose number of renewals did not change for its whole TTL has ended,
 * because its node sent the last renewal before it was first observed. This compares durations of our own monotonic clock only.
 */
export class PeerLeases {
  #seen = new Map<string, Seen>();

  /** Records leases that were read; `now` is a time after the response. */
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

  /** Returns when the next of these leases is overdue; undefined if none is known. */
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
