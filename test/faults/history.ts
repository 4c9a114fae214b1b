import type { Change, Observation, Rotation, Signature } from "./checker.ts";
import { type Credential, type KeyState, recordOf, verdictOn } from "./register.ts";
import type { KeyRevocation } from "./signing-keys.ts";

/** Requests and responses of the clients. Times are milliseconds of `performance.now()` in this process. */

export interface Mutation extends Change {
  readonly kind: string;
  readonly node: string;
  /** The request id of the call, which its event has. */
  readonly callId: string;
  acknowledged: number | null;
}

/** A verdict on a credential, or a listed record. */
export interface Read extends Observation {
  readonly node: string;
  /** Such as `gRPC batch`. */
  readonly by: string;
  readonly register: Register;
  /** The verified credential; undefined for a listed record. */
  readonly credential?: Credential;
}

/** A call of any kind. */
export interface Call {
  readonly kind: "verify" | "mutation" | "derive";
  readonly node: string;
  readonly began: number;
  readonly ended: number;
  /** Number of verdicts or changes in the response. */
  readonly count: number;
  readonly outcome: Outcome;
}

/** `unavailable`: 503; `lost`: no response, because of a broken connection or a timeout. */
export type Outcome = "answered" | "unavailable" | "lost";

/** The active faults from this time on. */
export interface Phase {
  readonly from: number;
  readonly faults: readonly string[];
  /** Nodes that were killed, stopped or cut off, whose response times are excluded. */
  readonly victims: string[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export type KeyKind = "issued" | "imported";

const MAX_CREDENTIALS = 12;

/** A key with all its changes and all responses about it. */
export class Register {
  readonly name: string;
  readonly kind: KeyKind;
  keyId = "";
  /** The secret of its latest creation. */
  generation = 0;
  readonly mutations: Mutation[] = [];
  readonly reads: Read[] = [];
  readonly credentials: Credential[] = [];
  readonly #expected = new Map<Credential, (state: KeyState) => string>();

  constructor(name: string, kind: KeyKind) {
    this.name = name;
    this.kind = kind;
  }

  /** Adds a credential to verify. Above a limit the oldest one is dropped, but never the raw key. */
  addCredential(credential: Credential): void {
    this.credentials.push(credential);
    if (this.credentials.length <= MAX_CREDENTIALS) return;
    const oldest = this.credentials.findIndex(({ type }) => type !== "raw");
    for (const evicted of this.credentials.splice(oldest, 1)) this.#expected.delete(evicted);
  }

  /** Returns the same function for each read of a credential. */
  expectedOf(credential: Credential): (state: KeyState) => string {
    const known = this.#expected.get(credential);
    if (known !== undefined) return known;
    const expected = (state: KeyState) => verdictOn(credential, state);
    this.#expected.set(credential, expected);
    return expected;
  }
}

export class History {
  readonly registers: Register[] = [];
  readonly calls: Call[] = [];
  readonly phases: Phase[] = [{ from: 0, faults: [], victims: [] }];
  readonly rotations: Mutable<Rotation>[] = [];
  /** Revocations of signing keys. */
  readonly revocations: Mutable<KeyRevocation>[] = [];
  readonly signatures: (Signature & { readonly node: string })[] = [];
  /** Responses that no fault explains, and records without a request. */
  readonly unexpected: string[] = [];
  /** Milliseconds from the end of a round's faults until all nodes were ready. */
  readonly recoveries: number[] = [];
  /** Number of verdicts marked as stale, and their maximum age in milliseconds. */
  staleVerdicts = 0;
  staleGrace = 0;
  readonly #inFlight = new Set<Promise<void>>();
  #numbers = 0;

  /** Returns a new number above 0, for a secret or a name. */
  nextNumber(): number {
    return ++this.#numbers;
  }

  register(kind: KeyKind): Register {
    const register = new Register(`key ${this.nextNumber()}`, kind);
    this.registers.push(register);
    return register;
  }

  verdict(
    register: Register,
    credential: Credential,
    read: Pick<Read, "node" | "by" | "began" | "ended" | "observed">,
  ) {
    register.reads.push({ ...read, register, credential, expected: register.expectedOf(credential) });
  }

  record(register: Register, read: Pick<Read, "node" | "by" | "began" | "ended" | "observed">) {
    register.reads.push({ ...read, register, expected: recordOf });
  }

  /** Tracks work that its caller may not await. */
  track(work: Promise<void>): Promise<void> {
    this.#inFlight.add(work);
    return work.finally(() => this.#inFlight.delete(work));
  }

  /** Resolves when all tracked work has finished. */
  async settle(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  startPhase(faults: readonly string[]): void {
    this.phases.push({ from: performance.now(), faults, victims: [] });
  }

  /** Returns the phase at this time. */
  phaseAt(time: number): Phase | undefined {
    return this.phases.findLast(({ from }) => from <= time);
  }
}
