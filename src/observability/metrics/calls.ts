import type { AnyFamily, HistogramSample, Sample } from "./family.ts";

/** Seconds: what is answered from memory takes 0.1 ms, a statement 1 ms, and after 10 s the database gives up. */
const BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The calls of one RPC over one protocol, as plain numbers: a call in memory takes 30 µs, and counting it is to cost none of them. */
class CallTally {
  readonly rpc: string;
  readonly protocol: string;
  /** By code, but for OK. */
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

/** Counts calls. Those who call it keep the tally of an RPC and protocol, so that none is looked up in a call. */
export class CallTallies {
  /** By protocol and RPC. */
  readonly #tallies = new Map<string, Map<string, CallTally>>();
  #begun = 0;

  begin(): void {
    this.#begun++;
  }

  /** The tally of an RPC and protocol, of which there must be a bounded number. */
  of(rpc: string, protocol: string): CallTally {
    const known = this.#tallies.get(protocol)?.get(rpc);
    if (known !== undefined) return known;
    const tally = new CallTally(rpc, protocol);
    const tallies = this.#tallies.get(protocol) ?? new Map<string, CallTally>();
    this.#tallies.set(protocol, tallies.set(rpc, tally));
    return tally;
  }

  families(): AnyFamily[] {
    return [
      {
        name: "keyhold_requests_total",
        help: "Requests that have ended, by RPC (other: none of them), protocol and gRPC code.",
        type: "counter",
        read: () => this.#seen().flatMap(byCode),
      },
      {
        name: "keyhold_request_duration_seconds",
        help: "Time from the head of a request to its answer.",
        type: "histogram",
        bounds: BOUNDS,
        read: () => this.#seen().map(durations),
      },
      {
        name: "keyhold_requests_in_flight",
        help: "Requests that have begun and not ended.",
        type: "gauge",
        read: () => this.#begun - this.#seen().reduce((total, { counts }) => total + sumOf(counts), 0),
      },
    ];
  }

  /** Without those that never came: most RPCs are called over one protocol. */
  #seen(): CallTally[] {
    return [...this.#tallies.values()]
      .flatMap((tallies) => [...tallies.values()])
      .filter(({ codes }) => codes.size > 0);
  }
}

function byCode({ rpc, protocol, codes }: CallTally): Sample[] {
  return [...codes].map(([code, value]) => ({ labels: { rpc, protocol, code }, value }));
}

function durations({ rpc, protocol, counts, sum }: CallTally): HistogramSample {
  return { labels: { rpc, protocol }, counts, sum };
}

function sumOf(counts: Float64Array): number {
  return counts.reduce((total, count) => total + count, 0);
}
