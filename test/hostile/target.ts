import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { Duplex } from "node:stream";
import { hasEnded } from "../support/programs/child.ts";
import { type Json, type RestClient, restClient } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";

const MAIN = resolve(import.meta.dirname, "../../src/cli/keyhold.js");
const PROBE = resolve(import.meta.dirname, "probe.ts");

export interface TargetOptions {
  readonly name: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Bearer credential that the server requires; undefined if it requires none. */
  readonly token: string | undefined;
  /** A program instead of Keyhold, with the same arguments, which logs its addresses in the same way. */
  readonly main?: string;
}

const MIB = 2 ** 20;

/**
 * Limits of a server after any input. Resident memory stays at 250 MiB except after the largest bodies: V8 keeps the memory to parse 16
 * MiB of JSON, after which it stays at 430 MiB.
 */
const BOUNDS = { residentMiB: 512, openFiles: 400 } as const;

/** The state of a server at one time. */
export interface Observation {
  /** Longest delay of the event loop since the previous observation, in milliseconds. */
  readonly eventLoopDelay: number;
  readonly residentMiB: number;
  /** Number of uncaught exceptions; NaN if the server does not report it. */
  readonly uncaught: number;
}

/** A server under test in a separate process. */
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
  /** Maxima of the observed values. */
  readonly peak = { eventLoopDelay: 0, tick: 0, residentMiB: 0 };
  /** Number of starts. */
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

  get pid(): number {
    return this.#child?.pid ?? 0;
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

  /** The same with an invalid token of the same length. */
  get maskedCredentials(): readonly (readonly [name: string, value: string])[] {
    return this.token === undefined ? [] : [["authorization", `Bearer ${"x".repeat(this.token.length)}`]];
  }

  /** A client with the token that the server requires. */
  get operator(): RestClient {
    return restClient(this, Object.fromEntries(this.credentials));
  }

  get isAlive(): boolean {
    return this.#child !== undefined && this.#ended === undefined;
  }

  async start(): Promise<void> {
    const env = { PATH: process.env.PATH, KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "0", ...this.#environment };
    const args = ["--import", PROBE, this.#main, "serve"];
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

  async stop(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || hasEnded(child)) return;
    child.kill(signal);
    await once(child, "close");
  }

  /** Waits briefly for a process that may be exiting, so that its exit is attributed to the right case. */
  async settle(): Promise<void> {
    await fetch(`${this.#url}/health/alive`, { signal: AbortSignal.timeout(5_000) })
      .then(
        (response) => response.arrayBuffer(),
        () =>
          this.#child === undefined ? undefined : once(this.#child, "close", { signal: AbortSignal.timeout(500) }),
      )
      .catch(() => undefined);
  }

  /** Returns the problems of the process, and the errors that it has logged since the last call. */
  async problems(): Promise<string[]> {
    if (this.#ended !== undefined) return [this.#ended];
    const logged = this.#errorLines.splice(0).map((line) => `logged: ${line.slice(0, 1_000)}`);
    const [{ residentMiB, uncaught }, openFiles] = [await this.observe(), await this.#openFiles()];
    // It may have exited meanwhile.
    if (this.#ended !== undefined) return [...logged, this.#ended];
    return [
      ...logged,
      ...(residentMiB > BOUNDS.residentMiB ? [`resident memory is ${residentMiB} MiB`] : []),
      ...(uncaught === 0 ? [] : [`keyhold_uncaught_total is ${uncaught}`]),
      ...(openFiles > BOUNDS.openFiles ? [`${openFiles} files are open`] : []),
    ];
  }

  /** Returns the current values of the process; zeros if it has exited. */
  async observe(): Promise<Observation> {
    const samples = await scrape(this.#metrics).catch(() => []);
    if (samples.length === 0) {
      await this.#awaitEnd();
      return { eventLoopDelay: 0, residentMiB: 0, uncaught: 0 };
    }
    const residentMiB = Math.round(total(samples, "process_resident_memory_bytes") / MIB);
    const eventLoopDelay = Math.round(await this.#probe("delay"));
    this.peak.residentMiB = Math.max(this.peak.residentMiB, residentMiB);
    this.peak.eventLoopDelay = Math.max(this.peak.eventLoopDelay, eventLoopDelay);
    return { eventLoopDelay, residentMiB, uncaught: total(samples, "keyhold_uncaught_total") };
  }

  /** Starts to measure the ticks of the event loop. */
  async measureTicks(): Promise<void> {
    await this.#probe("start");
  }

  /** Stops measuring. Returns the longest tick in milliseconds of CPU time. */
  async longestTick(): Promise<number> {
    const tick = await this.#probe("tick");
    this.peak.tick = Math.max(this.peak.tick, tick);
    return tick;
  }

  /** Returns the memory in use after a full garbage collection, in MiB. */
  async retainedMiB(): Promise<number> {
    return Math.round((await this.#probe("memory")) / MIB);
  }

  /** Sends a command to `probe.ts`. Returns 0 if the process has exited. */
  async #probe(command: string): Promise<number> {
    const channel = this.#child?.stdio[3];
    if (!this.isAlive || !(channel instanceof Duplex)) return 0;
    channel.write(`${command}\n`);
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
