import type { Change, Observation, Rotation, Signature } from "./checker.ts";
import { type Credential, type KeyState, recordOf, verdictOn } from "./register.ts";

/** The requests and responses of the clients, on the one clock of this process: milliseconds of `performance.now()`. */

export interface Mutation extends Change {
  readonly kind: string;
  readonly node: string;
  acknowledged: number | null;
  /** The hint of the secret that a rotation answered with: it identifies the rotation in the database. */
  hint?: string;
}

/** A verdict on a credential, or what a list said of the record. */
export interface Read extends Observation {
  readonly node: string;
  /** Such as `gRPC batch`. */
  readonly by: string;
  readonly register: Register;
  /** What the verdict is on; undefined: it is a record. */
  readonly credential?: Credential;
}

/** A call, whatever it was about. */
export interface Call {
  readonly kind: "verify" | "mutation" | "derive";
  readonly node: string;
  readonly began: number;
  readonly ended: number;
  /** How many verdicts or changes its answer tells of. */
  readonly count: number;
  readonly outcome: Outcome;
}

/** `unavailable`: 503; `lost`: no answer, for the connection broke or the time was over. */
export type Outcome = "answered" | "unavailable" | "lost";

/** Faults that were there from this time on. */
export interface Phase {
  readonly from: number;
  readonly faults: readonly string[];
  /** The nodes that were killed, stopped or cut off: how long they take to answer says nothing of the others. */
  readonly victims: string[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export type KeyKind = "issued" | "imported";

const MAX_CREDENTIALS = 12;

/** A key with every change of it and every response about it. */
export class Register {
  readonly name: string;
  readonly kind: KeyKind;
  keyId = "";
  /** The secret that it was made with last. */
  incarnation = 0;
  readonly mutations: Mutation[] = [];
  readonly reads: Read[] = [];
  readonly credentials: Credential[] = [];
  readonly #expected = new Map<Credential, (state: KeyState) => string>();

  constructor(name: string, kind: KeyKind) {
    this.name = name;
    this.kind = kind;
  }

  /** Has it verified from now on; of many the oldest are forgotten, but never the raw key. */
  show(credential: Credential): void {
    this.credentials.push(credential);
    if (this.credentials.length <= MAX_CREDENTIALS) return;
    const oldest = this.credentials.findIndex(({ type }) => type !== "raw");
    for (const forgotten of this.credentials.splice(oldest, 1)) this.#expected.delete(forgotten);
  }

  /** One function a credential, however often it is read. */
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
  readonly signatures: (Signature & { readonly node: string })[] = [];
  /** Answers that no fault excuses, and records that nobody asked for. */
  readonly unexpected: string[] = [];
  /** Milliseconds from the end of a round's faults until all nodes were ready. */
  readonly recoveries: number[] = [];
  /** Verdicts that were marked as stale, and how late they may be, in milliseconds. */
  staleVerdicts = 0;
  staleGrace = 0;
  readonly #inFlight = new Set<Promise<void>>();
  #numbers = 0;

  /** Version of a secret or a name; never 0. */
  nextNumber(): number {
    return ++this.#numbers;
  }

  register(kind: KeyKind): Register {
    const register = new Register(`key ${this.nextNumber()}`, kind);
    this.registers.push(register);
    return register;
  }

  verdict(register: Register, credential: Credential, read: Pick<Read, "node" | "by" | "began" | "ended" | "said">) {
    register.reads.push({ ...read, register, credential, expected: register.expectedOf(credential) });
  }

  record(register: Register, read: Pick<Read, "node" | "by" | "began" | "ended" | "said">) {
    register.reads.push({ ...read, register, expected: recordOf });
  }

  /** Keeps in mind that this goes on though nobody may wait for it. */
  follow(work: Promise<void>): Promise<void> {
    this.#inFlight.add(work);
    return work.finally(() => this.#inFlight.delete(work));
  }

  /** Resolves when all that is followed is over. */
  async settle(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  enter(faults: readonly string[]): void {
    this.phases.push({ from: performance.now(), faults, victims: [] });
  }

  /** The phase of this time. */
  phaseAt(time: number): Phase | undefined {
    return this.phases.findLast(({ from }) => from <= time);
  }
}
