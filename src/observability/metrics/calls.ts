import { type AnyFamily, counter, gauge } from "./family.ts";

/** Upper bounds in seconds: a cached answer takes 0.1 ms, a statement 1 ms, and the statement timeout is 10 s. */
const BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counters of one RPC over one protocol, as plain numbers: a cached call takes 30 µs, so counting must cost almost nothing. */
class CallTally {
  readonly rpc: string;
  readonly protocol: string;
  /** Counts by code, except OK. */
  readonly #errors = new Map<string, number>();
  #ok = 0;
  readonly counts = new Float64Array(BOUNDS.length + 1);
  sum = 0;

  constructor(rpc: string, protocol: string) {
    this.rpc = rpc;
    this.protocol = protocol;
  }

  end(code: string, milliseconds: number): void {
    const seconds = milliseconds / 1000;
    if (code === "OK") this.#ok++;
    else this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1);
    this.sum += seconds;
    let bound = 0;
    while (bound < BOUNDS.length && seconds > (BOUNDS[bound] ?? 0)) bound++;
    this.counts[bound] = (this.counts[bound] ?? 0) + 1;
  }

  get codes(): ReadonlyMap<string, number> {
    return this.#ok === 0 ? this.#errors : new Map([["OK", this.#ok], ...this.#errors]);
  }
}

/** Counts calls. Callers keep the tally of an RPC and protocol, so that no call looks it up. */
export class CallTallies {
  /** By protocol and RPC. */
  readonly #tallies = new Map<string, Map<string, CallTally>>();
  #begun = 0;

  begin(): void {
    this.#begun++;
  }

  /** Returns the tally of an RPC and protocol. The number of combinations must be bounded. */
  of(rpc: string, protocol: string): CallTally {
    const existing = this.#tallies.get(protocol)?.get(rpc);
    if (existing !== undefined) return existing;
    const tally = new CallTally(rpc, protocol);
    const tallies = this.#tallies.get(protocol) ?? new Map<string, CallTally>();
    this.#tallies.set(protocol, tallies.set(rpc, tally));
    return tally;
  }

  families(): AnyFamily[] {
    return [
      counter("keyhold_requests_total", 'Completed requests by RPC or "other", protocol and gRPC code.', () =>
        this.#used().flatMap(({ rpc, protocol, codes }) =>
          [...codes].map(([code, value]) => ({ labels: { rpc, protocol, code }, value })),
        ),
      ),
      {
        name: "keyhold_request_duration_seconds",
        help: "Time from the request headers to the end of the response.",
        type: "histogram",
        bounds: BOUNDS,
        read: () => this.#used().map(({ rpc, protocol, counts, sum }) => ({ labels: { rpc, protocol }, counts, sum })),
      },
      gauge("keyhold_requests_in_flight", "Requests in flight.", () =>
        this.#used().reduce(
          (inFlight, { counts }) => counts.reduce((left, count) => left - count, inFlight),
          this.#begun,
        ),
      ),
    ];
  }

  /** Tallies with calls: most RPCs are called over one protocol only. */
  #used(): CallTally[] {
    return [...this.#tallies.values()]
      .flatMap((tallies) => [...tallies.values()])
      .filter(({ codes }) => codes.size > 0);
  }
}
