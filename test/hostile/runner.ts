import { seeded } from "../support/seeded.ts";
import type { Family, HostileCase } from "./case.ts";
import type { CaseContext } from "./case-context.ts";
import type { Target } from "./target.ts";
import { runWellBehavedClient } from "./well-behaved-client.ts";

/** A failed case, or several if none of them fails alone. */
export interface Finding {
  readonly family: string;
  readonly target: string;
  readonly indices: readonly number[];
  readonly problems: readonly string[];
  readonly description: string;
}

/** The report of a program with its own inputs. */
export interface ProgramReport {
  readonly cases: number;
  readonly problems: readonly string[];
}

/**
 * Maximum CPU time of one tick in milliseconds. The goal is 100 on an idle machine; where two processes share a core or its caches, the
 * same work has been measured to take nearly twice the CPU time.
 */
const MAX_TICK = 200;

/** Event-loop delay of a batch in milliseconds above which each of its cases is measured alone. */
const SUSPICIOUS_DELAY = 250;

/**
 * Maximum growth in MiB of a server's memory after a full garbage collection, relative to the memory before its first input. Caches,
 * compiled and lazily loaded code amount to 8, with TLS to 21; more than 3 KiB per input would exceed this in a run of the default length.
 */
const MAX_GROWTH = 30;

/** Retained memory of a server at one time. */
export interface MemorySample {
  readonly target: string;
  /** The family that ran before. */
  readonly after: string;
  /** Number of inputs of all servers until then. */
  readonly inputs: number;
  readonly retainedMiB: number;
}

/** Runs cases against servers, and isolates the case that caused a problem of its batch. */
export class Runner {
  readonly targets: readonly Target[];
  readonly seed: number;
  readonly #context: CaseContext;
  /** Number of inputs by family and kind. */
  readonly counts = new Map<string, number>();
  readonly findings: Finding[] = [];
  readonly memory: MemorySample[] = [];
  /** Retained memory of each server at its first measurement since its latest start. */
  readonly #initialMemory = new Map<string, number>();
  slowestCall = 0;

  constructor(targets: readonly Target[], context: CaseContext, seed: number) {
    this.targets = targets;
    this.#context = context;
    this.seed = seed;
  }

  get inputs(): number {
    return this.counts.values().reduce((sum, count) => sum + count, 0);
  }

  /** Returns the case for the seed, the family and the number. */
  caseOf(family: Family, index: number): HostileCase {
    return family.generate(seeded(hash(`${this.seed} ${family.name} ${index}`)), this.#context);
  }

  /** Runs the cases of a batch concurrently, then each alone if there was a problem. */
  async runBatch(family: Family, batch: number): Promise<void> {
    const target = this.targets[batch % this.targets.length];
    if (target === undefined) throw new Error("no server");
    const indices = Array.from({ length: family.parallel }, (_, offset) => batch * family.parallel + offset);
    const { problems, eventLoopDelay } = await this.#runCases(family, indices, target);
    const isSuspicious = family.measuresEach || eventLoopDelay > SUSPICIOUS_DELAY;
    if (problems.length === 0 && !isSuspicious) return;
    const before = this.findings.length;
    for (const index of indices) await this.runAlone(family, index, target);
    if (this.findings.length > before || problems.length === 0) return;
    // A problem that occurs neither alone nor again was caused by other load on the machine.
    const again = await this.#runCases(family, indices, target);
    if (again.problems.length === 0) return;
    this.#report(family, indices, target, ["only if these cases run concurrently:", ...problems, ...again.problems]);
  }

  async runAlone(family: Family, index: number, target: Target): Promise<void> {
    const { problems: found } = await this.#runCases(family, [index], target);
    // A case with a problem is not repeated, since its change would be reported with the next case.
    const problems = found.length > 0 ? found : await this.#measureTick(family, index, target);
    if (problems.length > 0) this.#report(family, [index], target, problems);
  }

  /** Runs a program with its own inputs against a server, and checks the server like after any case. */
  async runProgram(name: string, target: Target, run: () => Promise<ProgramReport>): Promise<void> {
    if (!target.isAlive) await target.start();
    await this.#context.addRevocable(target);
    let isOver = false;
    const client = runWellBehavedClient(target, this.#context, () => isOver);
    const report = await run();
    isOver = true;
    this.#noteProgram(name, target, report, await this.#check(target, await client));
  }

  /** Like `runProgram`, without a well-behaved client, for a program that changes and revokes all keys. */
  async runDestructiveProgram(name: string, target: Target, run: () => Promise<ProgramReport>): Promise<void> {
    if (!target.isAlive) await target.start();
    const report = await run();
    await target.settle();
    this.#noteProgram(name, target, report, await target.problems());
  }

  #noteProgram(name: string, { name: target }: Target, report: ProgramReport, found: readonly string[]): void {
    const problems = [...report.problems, ...found];
    this.counts.set(name, (this.counts.get(name) ?? 0) + report.cases);
    if (problems.length > 0) this.findings.push({ family: name, target, indices: [], problems, description: "" });
  }

  /** Measures the retained memory of each server. Must be called before the first input, and then after each family. */
  async measureMemory(after: string): Promise<void> {
    for (const target of this.targets) {
      if (!target.isAlive) continue;
      const retainedMiB = await target.retainedMiB();
      this.memory.push({ target: target.name, after, inputs: this.inputs, retainedMiB });
      const key = `${target.name}, start ${target.starts}`;
      const first = this.#initialMemory.get(key) ?? retainedMiB;
      this.#initialMemory.set(key, first);
      if (retainedMiB - first <= MAX_GROWTH) continue;
      const problems = [`retains ${retainedMiB} MiB after a full collection, ${first} MiB at the first measurement`];
      this.findings.push({ family: after, target: target.name, indices: [], problems, description: "" });
    }
  }

  /** Measures a case twice, since the first time code may be loaded or compiled. Reports a problem only if both exceed the limit. */
  async #measureTick(family: Family, index: number, target: Target): Promise<string[]> {
    let found: string[] = [];
    for (let round = 0; round < 2; round++) {
      const one = this.caseOf(family, index);
      await target.measureTicks();
      await one.run(target);
      const tick = await target.longestTick();
      if (tick <= (one.maxTick ?? MAX_TICK)) return [];
      found = [`held the event loop for ${tick} ms of CPU time`];
    }
    return found;
  }

  async #runCases(family: Family, indices: readonly number[], target: Target) {
    if (!target.isAlive) await target.start();
    await this.#context.addRevocable(target);
    let isOver = false;
    const client = runWellBehavedClient(target, this.#context, () => isOver);
    const cases = indices.map((index) => this.caseOf(family, index));
    const answered = await Promise.all(
      cases.map(async (one) => {
        this.#count(family, one);
        return one.run(target).catch((error: Error) => [`the case could not run: ${error.stack}`]);
      }),
    );
    isOver = true;
    const ended = await client;
    await target.settle();
    const eventLoopDelay = target.isAlive ? (await target.observe()).eventLoopDelay : 0;
    return { problems: [...answered.flat(), ...(await this.#check(target, ended))], eventLoopDelay };
  }

  /** Returns the problems of the server, of the well-behaved client, and in the database. */
  async #check(
    target: Target,
    { problems, slowest }: Awaited<ReturnType<typeof runWellBehavedClient>>,
  ): Promise<string[]> {
    this.slowestCall = Math.max(this.slowestCall, slowest);
    await target.settle();
    return [...problems, ...(await target.problems()), ...(await this.#context.monitor.changes())];
  }

  #count({ name }: Family, { kind }: HostileCase): void {
    const full = `${name}: ${kind}`;
    this.counts.set(full, (this.counts.get(full) ?? 0) + 1);
  }

  #report(family: Family, indices: readonly number[], target: Target, problems: readonly string[]): void {
    const description = indices.length > 1 ? "" : this.caseOf(family, indices[0] ?? 0).description(target);
    this.findings.push({
      family: family.name,
      target: target.name,
      indices,
      problems: [...new Set(problems)],
      description,
    });
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ character.charCodeAt(0), 0x01000193);
  return value >>> 0;
}
