import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { Duplex } from "node:stream";
import type { Json } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";

const MAIN = resolve(import.meta.dirname, "../../src/cli/keyhold.js");
const PROBE = resolve(import.meta.dirname, "probe.ts");

export interface TargetOptions {
  readonly name: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Bearer credential that the server requires; undefined if it requires none. */
  readonly token: string | undefined;
  /** Another program than Keyhold, which takes the same arguments and logs where it listens in the same way. */
  readonly main?: string;
}

const MIB = 2 ** 20;

/**
 * What a server may take after any input. It stays at 250 MiB through all but the largest bodies: V8 keeps what 16 MiB of JSON take to
 * read, and after that it stays at 430 MiB.
 */
const BOUNDS = { residentMiB: 512, openFiles: 400 } as const;

/** What an observation found at one time. */
export interface Load {
  /** Longest delay of the event loop since the previous observation, in milliseconds. */
  readonly eventLoopDelay: number;
  readonly residentMiB: number;
  /** Exceptions that nothing has caught; NaN if the server does not say. */
  readonly uncaught: number;
}

/** A server under test, in a process of its own. */
export class Target {
  readonly name: string;
  readonly token: string | undefined;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #main: string;
  #child: ChildProcess | undefined;
  #ended: string | undefined;
  #url = "";
  #metrics = "";
  #errorLines: string[] = [];
  #answers: AsyncIterator<string> | undefined;
  /** Largest values that were observed. */
  readonly peak = { eventLoopDelay: 0, turn: 0, residentMiB: 0 };
  /** How often it was started. */
  starts = 0;

  constructor({ name, environment, token, main = MAIN }: TargetOptions) {
    this.name = name;
    this.token = token;
    this.#environment = environment;
    this.#main = main;
  }

  get url(): string {
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  get tls(): boolean {
    return this.#url.startsWith("https:");
  }

  /** Header fields that a call needs. */
  get credentials(): readonly (readonly [name: string, value: string])[] {
    return this.token === undefined ? [] : [["authorization", `Bearer ${this.token}`]];
  }

  /** The same with a token of as many characters that is none. */
  get maskedCredentials(): readonly (readonly [name: string, value: string])[] {
    return this.token === undefined ? [] : [["authorization", `Bearer ${"x".repeat(this.token.length)}`]];
  }

  get isAlive(): boolean {
    return this.#child !== undefined && this.#ended === undefined;
  }

  async start(): Promise<void> {
    const env = { PATH: process.env.PATH, KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "0", ...this.#environment };
    const args = ["--expose-gc", "--import", PROBE, this.#main, "serve"];
    const child: ChildProcess = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe", "pipe"] });
    const killWithUs = () => child.kill("SIGKILL");
    process.once("exit", killWithUs);
    this.#child = child;
    this.#ended = undefined;
    this.#errorLines = [];
    this.starts++;
    let stderr = "";
    child.stderr?.on("data", (text) => {
      stderr = `${stderr}${text}`.slice(-4_000);
      this.#errorLines.push(`on standard error: ${text}`);
    });
    const ended = once(child, "close").then(([code, signal]) => {
      process.off("exit", killWithUs);
      if (this.#child === child) this.#ended = `the process ended (${signal ?? `exit code ${code}`}): ${stderr}`;
    });
    const channel = child.stdio[3];
    if (channel instanceof Duplex) {
      channel.on("error", () => {});
      this.#answers = createInterface({ input: channel })[Symbol.asyncIterator]();
    }
    const listening = this.#followLog(child);
    await Promise.race([listening, ended]);
    if (this.#ended !== undefined) throw new Error(`${this.name}: ${this.#ended}`);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "close");
  }

  /** Waits a moment for a process that may be ending, so that its end is attributed to the right case. */
  async settle(): Promise<void> {
    await fetch(`${this.#url}/health/alive`, { signal: AbortSignal.timeout(5_000) })
      .then(
        (response) => response.arrayBuffer(),
        () =>
          this.#child === undefined ? undefined : once(this.#child, "close", { signal: AbortSignal.timeout(500) }),
      )
      .catch(() => undefined);
  }

  /** What is wrong with the process now, and what it has logged as an error since the last call. */
  async problems(): Promise<string[]> {
    if (this.#ended !== undefined) return [this.#ended];
    const logged = this.#errorLines.splice(0).map((line) => `logged: ${line.slice(0, 1_000)}`);
    const [{ residentMiB, uncaught }, openFiles] = [await this.observe(), await this.#openFiles()];
    // It may have ended meanwhile.
    if (this.#ended !== undefined) return [...logged, this.#ended];
    return [
      ...logged,
      ...(residentMiB > BOUNDS.residentMiB ? [`resident memory is ${residentMiB} MiB`] : []),
      ...(uncaught === 0 ? [] : [`keyhold_uncaught_total is ${uncaught}`]),
      ...(openFiles > BOUNDS.openFiles ? [`${openFiles} files are open`] : []),
    ];
  }

  /** What the process takes; nothing if it has ended. */
  async observe(): Promise<Load> {
    const samples = await scrape(this.#metrics).catch(() => []);
    if (samples.length === 0) {
      await this.#awaitEnd();
      return { eventLoopDelay: 0, residentMiB: 0, uncaught: 0 };
    }
    const residentMiB = Math.round(total(samples, "process_resident_memory_bytes") / MIB);
    const eventLoopDelay = Math.round(total(samples, "nodejs_eventloop_lag_max_seconds") * 1000);
    this.peak.residentMiB = Math.max(this.peak.residentMiB, residentMiB);
    this.peak.eventLoopDelay = Math.max(this.peak.eventLoopDelay, eventLoopDelay);
    return { eventLoopDelay, residentMiB, uncaught: total(samples, "keyhold_uncaught_total") };
  }

  /** Begins to measure the turns of the event loop. */
  async watchTurns(): Promise<void> {
    await this.#probe("watch");
  }

  /** Ends that. Returns the longest turn, in milliseconds of CPU time. */
  async longestTurn(): Promise<number> {
    const turn = await this.#probe("turn");
    this.peak.turn = Math.max(this.peak.turn, turn);
    return turn;
  }

  /** Returns what is in use after all garbage was collected, in MiB. */
  async retainedMiB(): Promise<number> {
    return Math.round((await this.#probe("memory")) / MIB);
  }

  /** Asks `probe.ts`. Returns 0 if the process has ended. */
  async #probe(question: string): Promise<number> {
    const channel = this.#child?.stdio[3];
    if (!this.isAlive || !(channel instanceof Duplex)) return 0;
    channel.write(`${question}\n`);
    const { value } = (await this.#answers?.next()) ?? {};
    return Number(value ?? 0);
  }

  async #awaitEnd(): Promise<void> {
    const child = this.#child;
    if (child === undefined || this.#ended !== undefined) return;
    await once(child, "close", { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
  }

  async #openFiles(): Promise<number> {
    return (await readdir(`/proc/${this.#child?.pid}/fd`).catch(() => [])).length;
  }

  /** Resolves when the server listens. */
  #followLog(child: ChildProcess): Promise<void> {
    return new Promise((resolve) => {
      if (child.stdout === null) return;
      createInterface({ input: child.stdout }).on("line", (text) => {
        const line: Json = JSON.parse(text);
        if (line.level >= 50) this.#errorLines.push(text);
        if (line.metrics !== undefined) this.#metrics = line.metrics;
        if (line.url === undefined) return;
        this.#url = line.url;
        resolve();
      });
    });
  }
}
