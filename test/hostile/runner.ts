import { seeded } from "../support/seeded.ts";
import type { Family, HostileCase } from "./case.ts";
import { callHonestly } from "./honest.ts";
import type { Target } from "./target.ts";
import type { World } from "./world.ts";

/** A case that something is wrong with, or several when none of them did it alone. */
export interface Finding {
  readonly family: string;
  readonly target: string;
  readonly indices: readonly number[];
  readonly problems: readonly string[];
  readonly shown: string;
}

/** What a program did that plays inputs of its own. */
export interface ProgramReport {
  readonly cases: number;
  readonly problems: readonly string[];
}

/**
 * Milliseconds of CPU time that one input may hold the event loop. At most 100 are promised, on a machine that has nothing else to do;
 * where two processes share a core, or its caches, the same work has been seen to take nearly twice the CPU time.
 */
const MAX_TURN = 200;

/** Milliseconds of delay that a batch may have on a busy machine before each of its cases is looked at alone. */
const SUSPICIOUS_DELAY = 250;

/**
 * MiB that a server may retain, after all garbage was collected, above what it did before its first input. Caches, compiled code and what is
 * loaded late come to 16; more than 4 KiB an input would exceed this in a run of the usual length.
 */
const MAX_GROWTH = 40;

/** What a server retained at one time. */
export interface MemorySample {
  readonly target: string;
  /** The family that was played before. */
  readonly after: string;
  /** Inputs that all servers had had by then. */
  readonly inputs: number;
  readonly retainedMiB: number;
}

/** Plays cases against servers, and finds the case that did what a batch of them did. */
export class Runner {
  readonly targets: readonly Target[];
  readonly seed: number;
  readonly #world: World;
  /** Number of inputs by family and kind. */
  readonly counts = new Map<string, number>();
  readonly findings: Finding[] = [];
  readonly memory: MemorySample[] = [];
  /** What each server retained at first, of those that have not been started again. */
  readonly #atFirst = new Map<string, number>();
  slowestHonest = 0;

  constructor(targets: readonly Target[], world: World, seed: number) {
    this.targets = targets;
    this.#world = world;
    this.seed = seed;
  }

  get inputs(): number {
    return this.counts.values().reduce((sum, count) => sum + count, 0);
  }

  /** The case that the seed, its family and its number decide. */
  caseOf(family: Family, index: number): HostileCase {
    return family.generate(seeded(hash(`${this.seed} ${family.name} ${index}`)), this.#world);
  }

  /** Plays the cases of this number of a batch at once; each alone, if one of them did something. */
  async playBatch(family: Family, batch: number): Promise<void> {
    const target = this.targets[batch % this.targets.length];
    if (target === undefined) throw new Error("there is no server");
    const indices = Array.from({ length: family.parallel }, (_, offset) => batch * family.parallel + offset);
    const { problems, eventLoopDelay } = await this.#play(family, indices, target);
    const isSuspicious = family.measuresEach || eventLoopDelay > SUSPICIOUS_DELAY;
    if (problems.length === 0 && !isSuspicious) return;
    const before = this.findings.length;
    for (const index of indices) await this.playAlone(family, index, target);
    if (this.findings.length > before || problems.length === 0) return;
    // What none of them does alone, and all of them at once do not do again, was the machine's doing.
    const again = await this.#play(family, indices, target);
    if (again.problems.length === 0) return;
    this.#report(family, indices, target, ["with none of these cases alone:", ...problems, ...again.problems]);
  }

  async playAlone(family: Family, index: number, target: Target): Promise<void> {
    const { problems: found } = await this.#play(family, [index], target);
    // Played again, a case that changed something would be found out with the next one.
    const problems = found.length > 0 ? found : await this.#turn(family, index, target);
    if (problems.length > 0) this.#report(family, [index], target, problems);
  }

  /** Runs a program that plays inputs of its own against a server, and looks at the server as after any case. */
  async playProgram(name: string, target: Target, play: () => Promise<ProgramReport>): Promise<void> {
    if (!target.isAlive) await target.start();
    let isOver = false;
    const honest = callHonestly(target, this.#world, () => isOver);
    const report = await play();
    isOver = true;
    this.#noteProgram(name, target, report, await this.#look(target, await honest));
  }

  /** The same for a program that changes and revokes whatever keys it finds: after it no honest client has one. */
  async playDestructively(name: string, target: Target, play: () => Promise<ProgramReport>): Promise<void> {
    if (!target.isAlive) await target.start();
    const report = await play();
    await target.settle();
    this.#noteProgram(name, target, report, await target.problems());
  }

  #noteProgram(name: string, { name: target }: Target, report: ProgramReport, found: readonly string[]): void {
    const problems = [...report.problems, ...found];
    this.counts.set(name, (this.counts.get(name) ?? 0) + report.cases);
    if (problems.length > 0) this.findings.push({ family: name, target, indices: [], problems, shown: "" });
  }

  /** Looks at what each server retains. To be called before the first input, and then after each family. */
  async measureMemory(after: string): Promise<void> {
    for (const target of this.targets) {
      if (!target.isAlive) continue;
      const retainedMiB = await target.retainedMiB();
      this.memory.push({ target: target.name, after, inputs: this.inputs, retainedMiB });
      const key = `${target.name}, start ${target.starts}`;
      const first = this.#atFirst.get(key) ?? retainedMiB;
      this.#atFirst.set(key, first);
      if (retainedMiB - first <= MAX_GROWTH) continue;
      const problems = [`retains ${retainedMiB} MiB after a full collection, and ${first} MiB at first`];
      this.findings.push({ family: after, target: target.name, indices: [], problems, shown: "" });
    }
  }

  /** Two times out of two: the first time something may be loaded, or compiled. */
  async #turn(family: Family, index: number, target: Target): Promise<string[]> {
    let found: string[] = [];
    for (let round = 0; round < 2; round++) {
      const one = this.caseOf(family, index);
      await target.watchTurns();
      await one.play(target);
      const turn = await target.longestTurn();
      if (turn <= (one.maxTurn ?? MAX_TURN)) return [];
      found = [`held the event loop for ${turn} ms of CPU time`];
    }
    return found;
  }

  async #play(family: Family, indices: readonly number[], target: Target) {
    if (!target.isAlive) await target.start();
    let isOver = false;
    const honest = callHonestly(target, this.#world, () => isOver);
    const cases = indices.map((index) => this.caseOf(family, index));
    const answered = await Promise.all(
      cases.map(async (one) => {
        this.#count(family, one);
        return one.play(target).catch((error: Error) => [`the case could not be played: ${error.stack}`]);
      }),
    );
    isOver = true;
    const ended = await honest;
    await target.settle();
    const eventLoopDelay = target.isAlive ? (await target.observe()).eventLoopDelay : 0;
    return { problems: [...answered.flat(), ...(await this.#look(target, ended))], eventLoopDelay };
  }

  /** What is wrong with the server, with what an honest client saw of it, and with what is stored. */
  async #look(target: Target, { problems, slowest }: Awaited<ReturnType<typeof callHonestly>>): Promise<string[]> {
    this.slowestHonest = Math.max(this.slowestHonest, slowest);
    await target.settle();
    return [...problems, ...(await target.problems()), ...(await this.#world.witness.changes())];
  }

  #count({ name }: Family, { kind }: HostileCase): void {
    const full = `${name}: ${kind}`;
    this.counts.set(full, (this.counts.get(full) ?? 0) + 1);
  }

  #report(family: Family, indices: readonly number[], target: Target, problems: readonly string[]): void {
    const shown = indices.length > 1 ? "" : this.caseOf(family, indices[0] ?? 0).shown(target);
    this.findings.push({ family: family.name, target: target.name, indices, problems: [...new Set(problems)], shown });
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ character.charCodeAt(0), 0x01000193);
  return value >>> 0;
}
